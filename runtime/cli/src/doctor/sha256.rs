//! SHA-256 (FIPS 180-4), in the form in which the file RECORD of a wheel has it.

/// The first 32 bits of the fractional parts of the cube roots of the first 64 primes.
const ROUNDS: [u32; 64] = [
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
];

/// The same of the square roots of the first 8 primes.
const START: [u32; 8] = [
    0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
];

/// Returns the hash of `bytes` in the alphabet of base64 for URLs, without padding.
pub fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut text = String::new();
    for three in hash(bytes).chunks(3) {
        let at = |index: usize| u32::from(three.get(index).copied().unwrap_or(0));
        let bits = at(0) << 16 | at(1) << 8 | at(2);
        for digit in 0..=three.len() {
            text.push(char::from(ALPHABET[(bits >> (18 - 6 * digit) & 63) as usize]));
        }
    }
    text
}

fn hash(bytes: &[u8]) -> [u8; 32] {
    let mut state = START;
    let (blocks, rest) = bytes.as_chunks::<64>();
    blocks.iter().for_each(|block| mix(&mut state, block));
    // The end: one bit, zeros, and the number of bits.
    let mut end = rest.to_vec();
    end.push(0x80);
    end.resize((end.len() + 8).next_multiple_of(64) - 8, 0);
    end.extend((bytes.len() as u64 * 8).to_be_bytes());
    end.as_chunks::<64>().0.iter().for_each(|block| mix(&mut state, block));
    let mut out = [0; 32];
    for (word, four) in state.iter().zip(out.as_chunks_mut::<4>().0) {
        *four = word.to_be_bytes();
    }
    out
}

fn mix(state: &mut [u32; 8], block: &[u8; 64]) {
    let mut words = [0u32; 64];
    for (word, four) in words.iter_mut().zip(block.as_chunks::<4>().0) {
        *word = u32::from_be_bytes(*four);
    }
    for at in 16..64 {
        let (a, b) = (words[at - 15], words[at - 2]);
        let first = a.rotate_right(7) ^ a.rotate_right(18) ^ a >> 3;
        let second = b.rotate_right(17) ^ b.rotate_right(19) ^ b >> 10;
        words[at] =
            words[at - 16].wrapping_add(first).wrapping_add(words[at - 7]).wrapping_add(second);
    }
    let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = *state;
    for (round, word) in ROUNDS.iter().zip(words) {
        let sum = e.rotate_right(6) ^ e.rotate_right(11) ^ e.rotate_right(25);
        let choice = (e & f) ^ (!e & g);
        let one = h.wrapping_add(sum).wrapping_add(choice).wrapping_add(*round).wrapping_add(word);
        let sum = a.rotate_right(2) ^ a.rotate_right(13) ^ a.rotate_right(22);
        let two = sum.wrapping_add((a & b) ^ (a & c) ^ (b & c));
        (h, g, f, e, d, c, b, a) = (g, f, e, d.wrapping_add(one), c, b, a, one.wrapping_add(two));
    }
    for (old, new) in state.iter_mut().zip([a, b, c, d, e, f, g, h]) {
        *old = old.wrapping_add(new);
    }
}

#[cfg(test)]
mod tests {
    use super::base64;

    /// The examples of the standard, and lengths around the end of a block, from Python's hashlib.
    #[test]
    fn known_hashes() {
        assert_eq!(base64(b""), "47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU");
        assert_eq!(base64(b"abc"), "ungWv48Bz-pBQUDeXa4iI7ADYaOWF3qctBD_YfIAFa0");
        for (length, wanted) in LENGTHS {
            assert_eq!(base64(&vec![b'a'; length]), wanted, "{length}");
        }
    }

    const LENGTHS: [(usize, &str); 5] = [
        (55, "n0OQ-NMMLdkuyfCVtl4rmumwqSWlJY4kHJ8ekQ9zQxg"),
        (56, "s1Q5pKxvCUi21vnjxq8PX1kM4g8b3nCQ73lwaG7Gc4o"),
        (63, "fT50oF19sVvOStnsBljqmOPwbu7PFrTG__LaRX3cLzQ"),
        (64, "_-BU_nrgy23GXDr5th1SCfQ5hR20PQulmXM33xVGaOs"),
        (1000, "Qe3s5C1j6Nm_UVqbppMuHCDLyfWl0TRkWttdsblzfqM"),
    ];
}
