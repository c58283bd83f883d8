//! The signature hash: a polynomial over the basic elements. The hash of two sequences joined end to
//! end can be computed from their two hashes.
//!
//! `build.rs` and `mod.rs` use it to hash a signature without expanding it; `matching.rs` compares its
//! values. For elements with tokens `t1 … tn` ([`Basic::token`](super::Basic::token)) the value is
//!
//! ```text
//! t1 B^(n-1) + t2 B^(n-2) + … + tn   mod P        P = 2^127 - 1
//! ```
//!
//! Appending a sequence takes one multiplication and one addition. Repeating a sequence `k` times
//! takes O(log k) squarings. The prime must exceed the number of elements of a signature, which may
//! be almost 2^63. A common alternative, two hashes modulo 61-bit primes, does not suffice: the powers
//! of the base would repeat within a signature, and the bound below would not hold.
//!
//! **Collisions.** Take two different sequences of at most `n` elements. Their lengths may differ; no
//! token is 0. Their values are equal for at most `n` of the `P` possible bases. So the probability of
//! a collision is at most `n / 2^127` for a base chosen at random: 2^-107 for a million elements,
//! 2^-64 for the longest signature. The base is fixed, public, and equal in all processes, so an
//! attacker can construct a collision. The hash finds mistakes; it does not protect against attacks.
//! The base generates the multiplicative group modulo `P`, so its powers all differ; these powers are
//! the weights of the positions in a signature.

/// The number of elements of a signature, and the hash of these elements. A receiver can use both to
/// check the types of a message; the runtime's optional check sends 24 bits that are computed from the
/// two.
///
/// Equal sequences of basic types have equal hashes. Two different sequences of at most `n` elements
/// have equal hashes with probability at most `n / 2^127`, over a random choice of the base. The base
/// is in fact fixed, so the hash does not protect against collisions that are constructed on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SignatureHash {
    /// Number of basic elements.
    pub elements: u64,
    /// The value of the polynomial, below 2^127.
    pub value: u128,
}

impl SignatureHash {
    /// The hash of an empty sequence.
    pub const EMPTY: Self = Self { elements: 0, value: 0 };
    /// The prime modulus.
    pub const MODULUS: u128 = (1 << 127) - 1;
    /// The base of the polynomial, chosen as follows. Take the texts `typepack type signature 0`,
    /// `typepack type signature 1` and so on. For each text, compute the SHA-256 and reduce its first
    /// 128 bits modulo the prime. The base is the first result that is a primitive root.
    pub const BASE: u128 = 0x05e3_3e99_c3c5_7a49_2a79_9827_514f_b1fb;

    /// Returns the hash of the elements of `self` followed by those of `next`. The number of steps is
    /// logarithmic in the numbers of elements.
    ///
    /// The number of elements wraps around if it exceeds 2^64 - 1.
    #[must_use]
    pub fn then(self, next: Self) -> Self {
        Affine::of(self).then(Affine::of(next)).hash(self.elements.wrapping_add(next.elements))
    }

    /// Returns the hash of the elements of `self` repeated `count` times, in time logarithmic in the
    /// number of elements of the result.
    ///
    /// The number of elements wraps around if it exceeds 2^64 - 1.
    #[must_use]
    pub fn repeat(self, count: u64) -> Self {
        Affine::of(self).repeat(count).hash(self.elements.wrapping_mul(count))
    }
}

/// The effect on a hash of appending a sequence: the map `x -> scale * x + sum`, where `x` is the
/// hash of the elements before the sequence. `sum` is the hash of the sequence. `scale` is the base
/// to the power of the sequence's length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Affine {
    scale: u128,
    sum: u128,
}

impl Affine {
    /// The map of the empty sequence.
    pub(super) const EMPTY: Self = Self { scale: 1, sum: 0 };

    /// Returns the map of a sequence of one element.
    pub(super) const fn one(token: u32) -> Self {
        Self { scale: SignatureHash::BASE, sum: token as u128 }
    }

    fn of(hash: SignatureHash) -> Self {
        Self { scale: power_of_base(hash.elements), sum: hash.value % SignatureHash::MODULUS }
    }

    pub(super) fn then(self, next: Self) -> Self {
        Self { scale: mul(self.scale, next.scale), sum: add(mul(self.sum, next.scale), next.sum) }
    }

    pub(super) fn repeat(self, count: u64) -> Self {
        if count == 1 {
            return self;
        }
        let (mut power, mut rest, mut answer) = (self, count, Self::EMPTY);
        while rest > 0 {
            // Both operands of `then` are powers of `self`, and such powers commute. So the order of
            // the operands does not matter.
            if rest & 1 == 1 {
                answer = answer.then(power);
            }
            rest >>= 1;
            if rest > 0 {
                power = power.then(power);
            }
        }
        answer
    }

    pub(super) fn hash(self, elements: u64) -> SignatureHash {
        SignatureHash { elements, value: self.sum }
    }
}

/// Returns `a + b` modulo the prime. Both arguments must be below the prime.
const fn add(a: u128, b: u128) -> u128 {
    reduce(a + b)
}

/// Returns `a` modulo the prime. `a` may be any 128-bit number, such as the sum of two reduced
/// numbers.
const fn reduce(a: u128) -> u128 {
    let folded = (a & SignatureHash::MODULUS) + (a >> 127);
    if folded >= SignatureHash::MODULUS { folded - SignatureHash::MODULUS } else { folded }
}

/// Returns `a * b` modulo the prime. Both arguments must be below the prime.
const fn mul(a: u128, b: u128) -> u128 {
    const LOW: u128 = (1 << 64) - 1;
    let (a1, a0, b1, b0) = (a >> 64, a & LOW, b >> 64, b & LOW);
    // a b = a1 b1 2^128 + (a1 b0 + a0 b1) 2^64 + a0 b0. Here a1 and b1 have at most 63 bits, and 2^127
    // is 1 modulo the prime. None of the products and sums below exceeds 128 bits.
    let high = (a1 * b1) << 1;
    let middle = a1 * b0 + a0 * b1;
    let middle = ((middle & (LOW >> 1)) << 64) + (middle >> 63);
    add(add(reduce(high), reduce(middle)), reduce(a0 * b0))
}

/// Returns the base to the power `exponent`.
fn power_of_base(exponent: u64) -> u128 {
    const SQUARES: [u128; 64] = {
        let mut squares = [SignatureHash::BASE; 64];
        let mut i = 1;
        while i < 64 {
            squares[i] = mul(squares[i - 1], squares[i - 1]);
            i += 1;
        }
        squares
    };
    let (mut rest, mut power) = (exponent, 1);
    while rest > 0 {
        power = mul(power, SQUARES[rest.trailing_zeros() as usize]);
        rest &= rest - 1;
    }
    power
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Multiplies by repeated doubling and adding; the tests compare `mul` with this function.
    fn slow_mul(a: u128, b: u128) -> u128 {
        let (mut answer, mut a) = (0u128, a % SignatureHash::MODULUS);
        for bit in 0..127 {
            if b >> bit & 1 == 1 {
                answer = (answer + a) % SignatureHash::MODULUS;
            }
            a = (a + a) % SignatureHash::MODULUS;
        }
        answer
    }

    #[test]
    fn products_agree_with_schoolbook() {
        let p = SignatureHash::MODULUS;
        let mut numbers = vec![0, 1, 2, (1 << 64) - 1, 1 << 64, 1 << 126, p - 1, p - 2, p >> 1];
        let mut x = SignatureHash::BASE;
        for _ in 0..40 {
            numbers.push(x);
            x = slow_mul(x, SignatureHash::BASE);
        }
        for &a in &numbers {
            for &b in &numbers {
                assert_eq!(mul(a, b), slow_mul(a, b), "{a:#x} * {b:#x}");
                assert_eq!(add(a, b), (a + b) % p);
            }
        }
    }

    #[test]
    fn the_base_generates_the_group() {
        // A base generates the multiplicative group if, for every prime factor f of the group's order,
        // the base raised to the power (order / f) is not 1. The order is 2^127 - 2 = 2 (2^63 - 1)
        // (2^63 + 1). The array below holds its prime factors.
        let factors: [u128; 12] =
            [2, 3, 7, 19, 43, 73, 127, 337, 5419, 92737, 649_657, 77_158_673_929];
        let order = SignatureHash::MODULUS - 1;
        let mut rest = order;
        for factor in factors {
            while rest.is_multiple_of(factor) {
                rest /= factor;
            }
            let (mut exponent, mut power, mut answer) = (order / factor, SignatureHash::BASE, 1);
            while exponent > 0 {
                if exponent & 1 == 1 {
                    answer = mul(answer, power);
                }
                power = mul(power, power);
                exponent >>= 1;
            }
            assert_ne!(answer, 1, "order divides (p - 1) / {factor}");
        }
        assert_eq!(rest, 1);
    }

    #[test]
    fn repetition_is_repeated_appending() {
        let pair = Affine::one(3).then(Affine::one(5));
        let mut sum = Affine::EMPTY;
        for count in 0..70 {
            assert_eq!(pair.repeat(count), sum);
            assert_eq!(sum.scale, power_of_base(2 * count));
            sum = sum.then(pair);
        }
        let hash = pair.hash(2);
        assert_eq!(hash.repeat(6), hash.repeat(2).then(hash.repeat(4)));
        assert_eq!(hash.repeat(0), SignatureHash::EMPTY);
    }
}
