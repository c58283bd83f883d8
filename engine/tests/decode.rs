//! Tests decoding (envelope and contents) and rebuilding. Checks the rows of the standard's table of
//! combiners. Rebuilds random trees from their contents and checks that each result equals the
//! original. Also compares the sizes, bounds, element counts and packed bytes of random trees with the
//! oracle, the simple implementation in `typemap.rs`.

use std::collections::BTreeSet;
use typepack_engine::{
    Binding, Combiner, Contents, DEFAULT_ARGUMENT, Datatype, Distribution, Envelope, Form, Named,
    Order, TypeClass, UNDEFINED, pack_range, typemap,
};
use typepack_test_support::random::Random as Numbers;

fn named(named: Named) -> Datatype {
    Datatype::named(named)
}

/// Returns the envelope: the combiner, the form, and the numbers of integers, addresses, large counts and
/// datatypes.
fn envelope(ty: &Datatype) -> (i32, Form, usize, usize, usize, usize) {
    let e = ty.envelope();
    (e.combiner.0, e.form, e.integers, e.addresses, e.large_counts, e.datatypes)
}

fn rebuilt(ty: &Datatype) -> Datatype {
    let Contents { integers, addresses, large_counts, datatypes } = ty.contents().unwrap();
    Datatype::from_contents(ty.combiner(), &integers, &addresses, &large_counts, &datatypes)
        .unwrap()
}

/// Checks all columns of a type's row in the table: the envelope, the contents, and that the
/// envelope states the lengths of the contents.
#[track_caller]
fn row(ty: &Datatype, combiner: i32, form: Form, i: &[i32], a: &[i64], c: &[i64], d: &[Named]) {
    let contents = ty.contents().unwrap();
    assert_eq!((&contents.integers[..], &contents.addresses[..]), (i, a));
    assert_eq!(contents.large_counts, c);
    let types: Vec<Named> = contents.datatypes.iter().map(|d| d.as_named().unwrap()).collect();
    assert_eq!(types, d);
    assert_eq!(envelope(ty), (combiner, form, i.len(), a.len(), c.len(), d.len()));
    assert_eq!(ty.combiner().0, combiner);
    assert!(!ty.is_named());
    same(ty, &rebuilt(ty));
}

/// Checks the properties that a rebuilt type must share with the original.
#[track_caller]
fn same(a: &Datatype, b: &Datatype) {
    assert_eq!(typemap::typemap(a), typemap::typemap(b), "{a:?}");
    same_facts(a, b);
}

#[track_caller]
fn same_facts(a: &Datatype, b: &Datatype) {
    assert_eq!((a.size(), a.lb(), a.ub(), a.extent()), (b.size(), b.lb(), b.ub(), b.extent()));
    assert_eq!((a.true_lb(), a.true_ub(), a.align()), (b.true_lb(), b.true_ub(), b.align()));
    assert_eq!((a.elements(), a.depth()), (b.elements(), b.depth()));
    assert_eq!(a.envelope(), b.envelope());
}

/// Checks the rows of `runtime/capi/abi/combiners.csv` for calls with `int` arguments. They state the
/// positions and the numbers of all arguments. Most of these rows are also in the table of MPI-2.2 section
/// 4.1.13.
#[test]
fn int_rows() {
    let (int, t) = (named(Named::INT), [Named::INT]);
    let form = Form::Int;
    row(&int.dup(), 102, form, &[], &[], &[], &t);
    row(&Datatype::contiguous(7, &int).unwrap(), 103, form, &[7], &[], &[], &t);
    row(&Datatype::vector(2, 3, -4, &int).unwrap(), 104, form, &[2, 3, -4], &[], &[], &t);
    row(&Datatype::hvector(2, 3, 1 << 40, &int).unwrap(), 105, form, &[2, 3], &[1 << 40], &[], &t);
    let ty = Datatype::indexed(&[1, 2], &[30, -40], &int).unwrap();
    row(&ty, 106, form, &[2, 1, 2, 30, -40], &[], &[], &t);
    let ty = Datatype::hindexed(&[1, 2], &[30, 1 << 40], &int).unwrap();
    row(&ty, 107, form, &[2, 1, 2], &[30, 1 << 40], &[], &t);
    let ty = Datatype::indexed_block(5, &[30, 40, 50], &int).unwrap();
    row(&ty, 108, form, &[3, 5, 30, 40, 50], &[], &[], &t);
    let ty = Datatype::hindexed_block(5, &[30, 1 << 40], &int).unwrap();
    row(&ty, 109, form, &[2, 5], &[30, 1 << 40], &[], &t);
    let types = [Named::INT, Named::DOUBLE];
    let ty = Datatype::structured(&[1, 2], &[0, 8], &types.map(named)).unwrap();
    row(&ty, 110, form, &[2, 1, 2], &[0, 8], &[], &types);
    let ty = Datatype::subarray(&[8, 9], &[4, 2], &[2, 4], Order::C, &int).unwrap();
    row(&ty, 111, form, &[2, 8, 9, 4, 2, 2, 4, 12], &[], &[], &t);
    let ty = darray(&int);
    let integers = [6, 4, 2, 10, 20, 17, 18, 19, 3, 2, 3, 15];
    row(&ty, 112, form, &integers, &[], &[], &t);
    let ty = Datatype::f90_real(Some(6), Some(37)).unwrap();
    row(&ty, 113, form, &[6, 37], &[], &[], &[]);
    let ty = Datatype::f90_complex(None, Some(100)).unwrap();
    row(&ty, 114, form, &[UNDEFINED, 100], &[], &[], &[]);
    let ty = Datatype::f90_integer(9).unwrap();
    row(&ty, 115, form, &[9], &[], &[], &[]);
    row(&Datatype::resized(-8, 32, &int).unwrap(), 116, form, &[], &[-8, 32], &[], &t);
    let pair = Datatype::get_value_index(&named(Named::DOUBLE), &named(Named::LONG)).unwrap();
    row(&pair.unwrap(), 117, form, &[], &[], &[], &[Named::DOUBLE, Named::LONG]);
}

fn darray(old: &Datatype) -> Datatype {
    Datatype::darray(
        6,
        4,
        &[10, 20],
        &[Distribution::Block, Distribution::Cyclic],
        &[DEFAULT_ARGUMENT, 3],
        &[2, 3],
        Order::Fortran,
        old,
    )
    .unwrap()
}

/// Checks the rows of `runtime/capi/abi/combiners.csv` for large-count calls (`c` in the column `form`).
#[test]
fn large_rows() {
    let (int, t) = (named(Named::INT), [Named::INT]);
    let form = Form::Large;
    let large = |ty: Datatype| ty.with_form(Form::Large).unwrap();
    let check = |ty: Datatype, combiner, i: &[i32], c: &[i64]| {
        row(&large(ty), combiner, form, i, &[], c, &t);
    };
    check(Datatype::contiguous(7, &int).unwrap(), 103, &[], &[7]);
    check(Datatype::vector(2, 3, -4, &int).unwrap(), 104, &[], &[2, 3, -4]);
    check(Datatype::hvector(2, 3, 40, &int).unwrap(), 105, &[], &[2, 3, 40]);
    check(Datatype::indexed(&[1, 2], &[3, 4], &int).unwrap(), 106, &[], &[2, 1, 2, 3, 4]);
    check(Datatype::hindexed(&[1, 2], &[3, 4], &int).unwrap(), 107, &[], &[2, 1, 2, 3, 4]);
    check(Datatype::indexed_block(5, &[3, 4], &int).unwrap(), 108, &[], &[2, 5, 3, 4]);
    check(Datatype::hindexed_block(5, &[3, 4], &int).unwrap(), 109, &[], &[2, 5, 3, 4]);
    let ty = Datatype::subarray(&[8, 9], &[4, 2], &[2, 4], Order::Fortran, &int).unwrap();
    check(ty, 111, &[2, 15], &[8, 9, 4, 2, 2, 4]);
    check(darray(&int), 112, &[6, 4, 2, 17, 18, 19, 3, 2, 3, 15], &[10, 20]);
    check(Datatype::resized(-8, 32, &int).unwrap(), 116, &[], &[-8, 32]);
    let types = [Named::INT, Named::DOUBLE];
    let ty = large(Datatype::structured(&[1, 2], &[0, 8], &types.map(named)).unwrap());
    row(&ty, 110, form, &[], &[], &[2, 1, 2, 0, 8], &types);
    let none = large(Datatype::structured(&[], &[], &[]).unwrap());
    row(&none, 110, form, &[], &[], &[0], &[]);
    // These calls have no large-count form, so the type does not record a form. A dup of a
    // large-count type is decoded as a dup, and its old type keeps the large-count form.
    row(&large(int.dup()), 102, Form::Int, &[], &[], &[], &t);
    let dup = large(Datatype::contiguous(7, &int).unwrap()).dup();
    assert_eq!(envelope(&dup), (102, Form::Int, 0, 0, 0, 1));
    assert_eq!(dup.contents().unwrap().datatypes[0].envelope().form, Form::Large);
    assert_eq!(large(Datatype::f90_integer(3).unwrap()).form(), Form::Int);
    assert_eq!(large(int).form(), Form::Int);
}

/// Checks that a type which was made without a form decodes in the `int` form if its arguments fit
/// in an `int`, else in the large-count form.
#[test]
fn the_default_form() {
    let byte = named(Named::BYTE);
    let many = 1i64 << 31;
    for (fits, does_not) in [
        (Datatype::contiguous(many - 1, &byte), Datatype::contiguous(many, &byte)),
        (Datatype::vector(1, 1, -many, &byte), Datatype::vector(1, 1, many, &byte)),
        (Datatype::hvector(1, 1, many, &byte), Datatype::hvector(1, many, 1, &byte)),
        (Datatype::indexed(&[1], &[1], &byte), Datatype::indexed(&[1], &[many], &byte)),
        (Datatype::hindexed(&[1], &[many], &byte), Datatype::hindexed(&[many], &[1], &byte)),
        (Datatype::indexed_block(1, &[1], &byte), Datatype::indexed_block(1, &[many], &byte)),
        (Datatype::hindexed_block(1, &[many], &byte), Datatype::hindexed_block(many, &[1], &byte)),
        (
            Datatype::structured(&[1], &[many], std::slice::from_ref(&byte)),
            Datatype::structured(&[many], &[1], std::slice::from_ref(&byte)),
        ),
        (
            Datatype::subarray(&[many - 1], &[1], &[0], Order::C, &byte),
            Datatype::subarray(&[many], &[1], &[0], Order::C, &byte),
        ),
    ] {
        let (fits, does_not) = (fits.unwrap(), does_not.unwrap());
        assert_eq!((fits.form(), does_not.form()), (Form::Int, Form::Large), "{fits:?}");
        for ty in [fits, does_not] {
            same_facts(&ty, &rebuilt(&ty));
        }
    }
    let ty = Datatype::resized(many, many, &byte).unwrap();
    assert_eq!(ty.form(), Form::Int);
}

/// Checks the combiners of the MPI-1 calls (MPI-2.2 section 4.1.13). A call from Fortran has a combiner
/// of its own, but its arguments have the same positions in the contents as those of the call from C.
#[test]
fn the_integer_combiners() {
    let (int, t) = (named(Named::INT), [Named::INT]);
    for (binding, plus, form) in [(Binding::C, 0, Form::Int), (Binding::Fortran, 1, Form::Fortran)]
    {
        let ty = Datatype::type_hvector(2, 3, 40, &int, binding).unwrap();
        row(&ty, [105, 20005][plus], form, &[2, 3], &[40], &[], &t);
        let ty = Datatype::type_hindexed(&[1, 2], &[30, 40], &int, binding).unwrap();
        row(&ty, [107, 20007][plus], form, &[2, 1, 2], &[30, 40], &[], &t);
        let types = [Named::LB, Named::INT, Named::UB];
        let ty = Datatype::type_struct(&[1; 3], &[-3, 0, 6], &types.map(named), binding).unwrap();
        row(&ty, [110, 20010][plus], form, &[3, 1, 1, 1], &[-3, 0, 6], &[], &types);
    }
}

#[test]
fn named_types_are_what_they_are() {
    for n in Named::all().chain([Named::LB, Named::UB]) {
        let ty = named(n);
        assert_eq!(envelope(&ty), (101, Form::Int, 0, 0, 0, 0));
        assert!(ty.is_named() && ty.is_predefined() && ty.depth() == 0);
        // A dup of a named type is a derived type, which may be freed (MPI-2.2 section 4.1.13,
        // rationale).
        assert!(!ty.dup().is_named() && !ty.dup().is_predefined());
        assert_eq!(ty.dup().contents().unwrap().datatypes[0].as_named(), Some(n));
    }
    assert_eq!(Combiner::DARRAY.to_string(), "MPI_COMBINER_DARRAY");
    assert_eq!(Combiner(7).to_string(), "combiner 7");
}

/// Checks that two calls for a Fortran kind with equal arguments return the same type, and that this type
/// counts as predefined but is not named (MPI-5.0 section 19.1.5).
#[test]
fn fortran_kinds() {
    let real = || Datatype::f90_real(Some(15), Some(307)).unwrap();
    assert!(real().is_same(&real()));
    let other = Datatype::f90_real(Some(15), None).unwrap();
    assert!(!real().is_same(&other));
    assert!(real().is_predefined() && !real().is_named());
    assert_eq!((real().size(), real().extent(), real().align()), (8, 8, 8));
    assert_eq!(typemap::typemap(&real())[0].named, Named::REAL8);
    let complex = Datatype::f90_complex(Some(15), Some(307)).unwrap();
    assert_eq!((complex.size(), complex.elements()), (16, 1));
    let integer = Datatype::f90_integer(18).unwrap();
    assert_eq!((integer.size(), typemap::typemap(&integer)[0].named), (8, Named::INTEGER8));
    // A Fortran kind can be used wherever any other datatype can.
    let column = Datatype::vector(3, 1, 4, &real()).unwrap();
    assert_eq!(column.commit().unwrap().packed_bytes(1).unwrap(), 24);
}

#[test]
fn pairs() {
    let pair = |a, b| Datatype::get_value_index(&named(a), &named(b)).unwrap();
    for (value, index, expected) in [
        (Named::FLOAT, Named::INT, Named::FLOAT_INT),
        (Named::DOUBLE, Named::INT, Named::DOUBLE_INT),
        (Named::LONG, Named::INT, Named::LONG_INT),
        (Named::INT, Named::INT, Named::PAIR_INT),
        (Named::SHORT, Named::INT, Named::SHORT_INT),
        (Named::LONG_DOUBLE, Named::INT, Named::LONG_DOUBLE_INT),
        (Named::REAL, Named::REAL, Named::PAIR_REAL),
        (Named::DOUBLE_PRECISION, Named::DOUBLE_PRECISION, Named::PAIR_DOUBLE_PRECISION),
        (Named::INTEGER, Named::INTEGER, Named::PAIR_INTEGER),
    ] {
        assert_eq!(pair(value, index).unwrap().as_named(), Some(expected));
    }
    let unnamed = pair(Named::FLOAT, Named::INT64_T).unwrap();
    assert!(unnamed.is_same(&pair(Named::FLOAT, Named::INT64_T).unwrap()));
    assert!(unnamed.is_predefined() && !unnamed.is_named() && unnamed.depth() == 0);
    assert_eq!((unnamed.size(), unnamed.extent(), unnamed.true_extent()), (12, 16, 16));
    assert_eq!(unnamed.elements(), 2);
    let unnamed = pair(Named::INT64_T, Named::INT16_T).unwrap();
    assert_eq!((unnamed.size(), unnamed.extent(), unnamed.true_extent()), (10, 16, 10));
    for (value, index) in [
        (Named::FLOAT, Named::FLOAT),
        (Named::BYTE, Named::INT),
        (Named::C_DOUBLE_COMPLEX, Named::INT),
        (Named::C_BOOL, Named::INT),
        (Named::DOUBLE, Named::CHAR),
        (Named::DOUBLE_INT, Named::INT),
        (Named::LB, Named::INT),
    ] {
        assert!(pair(value, index).is_none(), "{value} {index}");
    }
    let derived = named(Named::INT).dup();
    assert!(Datatype::get_value_index(&derived, &named(Named::INT)).unwrap().is_none());
}

#[test]
fn types_of_a_class_and_size() {
    for (class, sizes) in [
        (
            TypeClass::INTEGER,
            &[(1, "INTEGER1"), (2, "INTEGER2"), (4, "INTEGER4"), (8, "INTEGER8")][..],
        ),
        (TypeClass::REAL, &[(2, "REAL2"), (4, "REAL4"), (8, "REAL8"), (16, "REAL16")]),
        (
            TypeClass::COMPLEX,
            &[(4, "COMPLEX4"), (8, "COMPLEX8"), (16, "COMPLEX16"), (32, "COMPLEX32")],
        ),
    ] {
        for (size, name) in sizes {
            let ty = Datatype::match_size(class, *size).unwrap();
            assert_eq!(ty.as_named().unwrap().name(), format!("MPI_{name}"));
            assert_eq!(ty.size(), i64::from(*size));
        }
    }
}

#[test]
fn what_contents_return_can_be_used_and_dropped() {
    let inner = Datatype::vector(2, 1, 3, &named(Named::INT)).unwrap();
    let outer = Datatype::contiguous(2, &inner).unwrap();
    let mut contents = outer.contents().unwrap();
    drop(outer);
    let back = contents.datatypes.pop().unwrap();
    same(&inner, &back);
    drop(inner);
    assert_eq!(back.commit().unwrap().packed_bytes(3).unwrap(), 24);
}

/// Makes random types.
struct Random(Numbers);

impl std::ops::Deref for Random {
    type Target = Numbers;

    fn deref(&self) -> &Numbers {
        &self.0
    }
}

impl std::ops::DerefMut for Random {
    fn deref_mut(&mut self) -> &mut Numbers {
        &mut self.0
    }
}

impl Random {
    fn leaf(&mut self) -> Datatype {
        match self.below(8) {
            0 => Datatype::f90_real(Some(self.between(0, 33) as i32), None).unwrap(),
            1 => Datatype::f90_complex(None, Some(self.between(0, 4931) as i32)).unwrap(),
            2 => Datatype::f90_integer(self.between(0, 38) as i32).unwrap(),
            3 => {
                let values = [Named::SHORT, Named::FLOAT, Named::DOUBLE, Named::INT8_T];
                let indices = [Named::INT, Named::LONG, Named::INT16_T];
                let value = named(values[self.below(4) as usize]);
                let index = named(indices[self.below(3) as usize]);
                Datatype::get_value_index(&value, &index).unwrap().unwrap()
            }
            _ => named(Named::all().nth(self.below(70) as usize).unwrap()),
        }
    }

    fn order(&mut self) -> Order {
        if self.below(2) == 0 { Order::C } else { Order::Fortran }
    }

    fn darray(&mut self, old: &Datatype) -> Datatype {
        let count = self.between(1, 3);
        let sizes = self.list(count, 1, 4);
        let (mut distributions, mut arguments, mut processes) = (vec![], vec![], vec![]);
        for &size in &sizes {
            let mut p = self.between(1, 3) as i32;
            let (distribution, argument) = match self.below(5) {
                0 => {
                    p = 1;
                    (Distribution::None, self.between(-1, 3) as i32)
                }
                1 => (Distribution::Block, DEFAULT_ARGUMENT),
                2 => (Distribution::Block, self.between((size + 2) / i64::from(p), 6) as i32),
                3 => (Distribution::Cyclic, DEFAULT_ARGUMENT),
                _ => (Distribution::Cyclic, self.between(1, 3) as i32),
            };
            distributions.push(distribution);
            let short = distribution == Distribution::Block && i64::from(argument * p) < size;
            arguments.push(if short { size as i32 } else { argument.max(-1) });
            if distribution != Distribution::None && arguments[arguments.len() - 1] < 1 {
                *arguments.last_mut().unwrap() = 1;
            }
            processes.push(p);
        }
        let all = processes.iter().product();
        let (rank, order) = (self.between(0, i64::from(all) - 1) as i32, self.order());
        Datatype::darray(all, rank, &sizes, &distributions, &arguments, &processes, order, old)
            .unwrap()
    }

    /// Returns a random tree of at most `depth` levels of constructors, small enough for the oracle: the
    /// function adds no constructor above a type with more than 60 basic elements.
    fn tree(&mut self, depth: i64) -> Datatype {
        if depth == 0 {
            return self.leaf();
        }
        let old = self.tree(depth - 1);
        if old.elements() > 60 {
            return old;
        }
        let (n, bl) = (self.between(0, 3), self.between(0, 3));
        let binding = if self.below(2) == 0 { Binding::C } else { Binding::Fortran };
        let ty = match self.below(17) {
            0 => old.dup(),
            1 => Datatype::contiguous(n, &old).unwrap(),
            2 => Datatype::vector(n, bl, self.between(-4, 4), &old).unwrap(),
            3 => Datatype::hvector(n, bl, self.between(-60, 60), &old).unwrap(),
            4 => {
                let (lengths, places) = (self.list(n, 0, 3), self.list(n, -5, 5));
                Datatype::indexed(&lengths, &places, &old).unwrap()
            }
            5 => {
                let (lengths, places) = (self.list(n, 0, 3), self.list(n, -90, 90));
                Datatype::hindexed(&lengths, &places, &old).unwrap()
            }
            6 => Datatype::indexed_block(bl, &self.list(n, -5, 5), &old).unwrap(),
            7 => Datatype::hindexed_block(bl, &self.list(n, -90, 90), &old).unwrap(),
            8 | 9 => {
                let types: Vec<Datatype> = (0..n)
                    .map(|_| match self.below(3) {
                        0 => old.clone(),
                        _ => self.tree(depth / 2),
                    })
                    .collect();
                let (lengths, places) = (self.list(n, 0, 2), self.list(n, -200, 200));
                Datatype::structured(&lengths, &places, &types).unwrap()
            }
            10 => {
                let types = [named(Named::LB), old.clone(), named(Named::UB), old];
                let (lengths, places) = (self.list(4, 0, 2), self.list(4, -200, 200));
                Datatype::type_struct(&lengths, &places, &types, binding).unwrap()
            }
            11 => Datatype::type_hvector(n, bl, self.between(-60, 60), &old, binding).unwrap(),
            12 => {
                let (lengths, places) = (self.list(n, 0, 3), self.list(n, -90, 90));
                Datatype::type_hindexed(&lengths, &places, &old, binding).unwrap()
            }
            13 => Datatype::resized(self.between(-50, 50), self.between(-90, 90), &old).unwrap(),
            14 => {
                let count = self.between(1, 3);
                let sizes = self.list(count, 1, 4);
                let subsizes: Vec<i64> = sizes.iter().map(|&s| self.between(1, s)).collect();
                let starts: Vec<i64> =
                    sizes.iter().zip(&subsizes).map(|(s, sub)| self.between(0, s - sub)).collect();
                let order = self.order();
                Datatype::subarray(&sizes, &subsizes, &starts, order, &old).unwrap()
            }
            _ => self.darray(&old),
        };
        if ty.form() == Form::Int && self.below(2) == 0 {
            return ty.with_form(Form::Large).unwrap();
        }
        ty
    }
}

/// Decodes a whole tree and rebuilds it from its named types. Adds all combiners that occur in the tree
/// to `met`.
fn rebuild_all(ty: &Datatype, met: &mut BTreeSet<i32>) -> Datatype {
    met.insert(ty.combiner().0);
    if ty.is_named() {
        return ty.clone();
    }
    let e: Envelope = ty.envelope();
    let Contents { integers, addresses, large_counts, datatypes } = ty.contents().unwrap();
    assert_eq!(
        (e.integers, e.addresses, e.large_counts, e.datatypes),
        (integers.len(), addresses.len(), large_counts.len(), datatypes.len())
    );
    let types: Vec<Datatype> = datatypes.iter().map(|d| rebuild_all(d, met)).collect();
    Datatype::from_contents(e.combiner, &integers, &addresses, &large_counts, &types).unwrap()
}

#[test]
fn random_trees_survive_decoding() {
    let mut random = Random(Numbers(2024));
    let mut met = BTreeSet::new();
    for i in 0..6000 {
        let ty = random.tree(i % 5 + 1);
        same(&ty, &rebuild_all(&ty, &mut met));
    }
    assert_eq!(met.len(), 20, "the combiners met are only {met:?}");
}

#[test]
fn random_trees_agree_with_the_oracle() {
    let mut random = Random(Numbers(77));
    for i in 0..4000 {
        let ty = random.tree(i % 5 + 1);
        let entries = typemap::typemap(&ty);
        let size: i64 = entries.iter().map(|e| i64::from(e.named.size())).sum();
        let low = entries.iter().map(|e| e.offset).min().unwrap_or(0);
        let high = entries.iter().map(|e| e.offset + i64::from(e.named.size())).max().unwrap_or(0);
        assert_eq!((ty.size(), ty.true_lb(), ty.true_ub()), (size, low, high), "{ty:?}");
        assert_eq!(ty.elements(), entries.len() as i64, "{ty:?}");

        let mut end = 0;
        for (n, entry) in entries.iter().enumerate() {
            assert_eq!(ty.get_elements(end), Some(n as u64), "{end} bytes of {ty:?}");
            let width = u64::from(entry.named.size());
            if width > 1 {
                assert_eq!(ty.get_elements(end + width - 1), None, "{ty:?}");
            }
            end += width;
        }

        let (plan, count) = (ty.commit().unwrap(), 2);
        let before = (low.min(low + ty.extent())).min(0).unsigned_abs() as usize;
        let after = high.max(high + ty.extent()).max(0) as usize;
        let memory: Vec<u8> = (0..before + after).map(|i| (i * 7 % 251) as u8).collect();
        let packed = typemap::pack(&ty, count, &memory, before);
        let mut out = vec![0; packed.len()];
        pack_range(&plan, count, &memory, before, 0..packed.len() as u64, &mut out).unwrap();
        assert_eq!(out, packed, "{ty:?}\n{}", plan.program());
    }
}

#[test]
fn a_tower_of_100_000_calls_decodes_level_by_level() {
    let mut ty = named(Named::INT);
    for i in 0..100_000 {
        ty = match i % 3 {
            0 => Datatype::contiguous(1, &ty).unwrap(),
            1 => darray_of_one(&ty),
            _ => ty.dup(),
        };
    }
    assert_eq!((ty.depth(), ty.elements(), ty.get_elements(12)), (100_000, 1, Some(3)));
    assert_eq!(ty.commit().unwrap().packed_bytes(1).unwrap(), 4);
    let mut levels = 0;
    while !ty.is_named() {
        ty = ty.contents().unwrap().datatypes.pop().unwrap();
        levels += 1;
    }
    assert_eq!((levels, ty.as_named()), (100_000, Some(Named::INT)));
}

fn darray_of_one(old: &Datatype) -> Datatype {
    let distribution = [Distribution::Cyclic];
    Datatype::darray(1, 0, &[1], &distribution, &[1], &[1], Order::C, old).unwrap()
}

#[test]
fn a_tower_of_empty_shares_drops_and_commits() {
    // A distributed array keeps its old type as a child, even if the rank's share is empty. So this
    // tower is 100,000 levels deep, although its size is 0.
    let mut empty = named(Named::INT);
    for _ in 0..100_000 {
        empty = Datatype::darray(2, 1, &[1], &[Distribution::Block], &[1], &[2], Order::C, &empty)
            .unwrap();
    }
    assert_eq!((empty.size(), empty.depth()), (0, 100_000));
    assert!(empty.commit().unwrap().program().nodes().is_empty());
}
