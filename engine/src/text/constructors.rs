//! The table of constructors, with the name, the parameters and the maker function of each constructor.
//! This file also contains the functions that return the constructor call of a given type.
//!
//! `parse.rs` and `print.rs` use this table and contain no code for any particular constructor. To add
//! a constructor, add a row to [`ROWS`] and an arm to [`call`]; a test checks that the row and the arm
//! agree.

use crate::datatype::{
    Binding, Call, Constructor, DEFAULT_ARGUMENT, Datatype, Distribution, F90, Order, UNDEFINED,
};
use crate::error::{Error, ErrorKind, Result};
use typepack_leaf::Table;

/// The form of an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// One number, or a word that the parameter accepts in place of a number.
    Number,
    /// A list in which each entry is a number or such a word.
    Numbers,
    /// A type.
    Type,
    /// A list of types.
    Types,
}

/// Words that stand for numbers, each with its number.
type Words = &'static [(&'static str, i64)];

/// A parameter of a constructor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parameter {
    /// The name of the parameter. The engine's errors use the same name, except that they call the
    /// stride of `hvector` `stride_bytes`.
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) words: Words,
    /// True if the parameter accepts only words.
    pub(crate) words_only: bool,
}

const fn number(name: &'static str) -> Parameter {
    Parameter { name, kind: Kind::Number, words: &[], words_only: false }
}

const fn numbers(name: &'static str) -> Parameter {
    Parameter { name, kind: Kind::Numbers, words: &[], words_only: false }
}

const OLD: Parameter = Parameter { name: "old", kind: Kind::Type, words: &[], words_only: false };
const TYPES: Parameter =
    Parameter { name: "types", kind: Kind::Types, words: &[], words_only: false };
const ORDER: Parameter = Parameter {
    name: "order",
    kind: Kind::Number,
    words: &[("C", 0), ("Fortran", 1), ("MPI_ORDER_C", 0), ("MPI_ORDER_FORTRAN", 1)],
    words_only: true,
};

const DISTRIBUTIONS: Parameter = Parameter {
    name: "distributions",
    kind: Kind::Numbers,
    words: &[("none", 16), ("block", 17), ("cyclic", 18)],
    words_only: true,
};
const ARGUMENTS: Parameter = Parameter {
    name: "arguments",
    kind: Kind::Numbers,
    words: &[("default", DEFAULT_ARGUMENT as i64)],
    words_only: false,
};

/// Returns the parameter of a Fortran 90 kind: a number or the word `undefined`.
const fn digits(name: &'static str) -> Parameter {
    Parameter {
        name,
        kind: Kind::Number,
        words: &[("undefined", UNDEFINED as i64)],
        words_only: false,
    }
}

const fn part(name: &'static str) -> Parameter {
    Parameter { name, kind: Kind::Type, words: &[], words_only: false }
}

/// The value of an argument. The variant corresponds to the kind of the parameter.
#[derive(Debug)]
pub(crate) enum Value {
    Number(i64),
    Numbers(Vec<i64>),
    Type(Datatype),
    Types(Vec<Datatype>),
}

/// The values of all arguments of a call, in the order of the row's parameters.
#[derive(Debug, Default)]
pub(crate) struct Values(pub(crate) Vec<Value>);

/// The message of a panic that cannot happen. The parser reads each value according to the kind of its
/// parameter, so a value always has the kind that the row states. The test
/// `every_row_builds_and_is_called_back` checks that each row's function asks for the kinds that the row
/// states.
const KIND: &str = "a value does not have the kind that its row states";

impl Values {
    fn number(&self, index: usize) -> i64 {
        if let Value::Number(number) = self.0[index] { number } else { unreachable!("{KIND}") }
    }

    fn numbers(&self, index: usize) -> &[i64] {
        if let Value::Numbers(list) = &self.0[index] { list } else { unreachable!("{KIND}") }
    }

    /// Returns the number at `index` as an `i32`. The MPI calls take this argument as an `int`, and the
    /// error for larger numbers names `name`.
    fn small(&self, index: usize, name: &'static str) -> Result<i32> {
        narrow(name, self.number(index))
    }

    fn smalls(&self, index: usize, name: &'static str) -> Result<Vec<i32>> {
        self.numbers(index).iter().map(|&number| narrow(name, number)).collect()
    }

    fn given(&self, index: usize, name: &'static str) -> Result<Option<i32>> {
        self.small(index, name).map(|number| (number != UNDEFINED).then_some(number))
    }

    fn order(&self, index: usize) -> Order {
        if self.number(index) == 0 { Order::C } else { Order::Fortran }
    }

    fn ty(&self, index: usize) -> &Datatype {
        if let Value::Type(ty) = &self.0[index] { ty } else { unreachable!("{KIND}") }
    }

    fn types(&self, index: usize) -> &[Datatype] {
        if let Value::Types(types) = &self.0[index] { types } else { unreachable!("{KIND}") }
    }
}

fn narrow(name: &'static str, number: i64) -> Result<i32> {
    i32::try_from(number).map_err(|_| {
        Error::new(
            ErrorKind::Overflow,
            name,
            format!("{number} does not fit in a signed 32-bit integer"),
        )
    })
}

fn distribution(value: &i64) -> Result<Distribution> {
    // The parameter accepts only words, and each of its words is a distribution, so this conversion
    // succeeds.
    i32::try_from(*value).ok().and_then(Distribution::from_abi_value).ok_or_else(|| {
        let detail = format!("{value} is not one of MPI_DISTRIBUTE_BLOCK, _CYCLIC, _NONE");
        Error::new(ErrorKind::Argument, "distributions", detail)
    })
}

fn structured(values: &Values) -> Result<Datatype> {
    let (lengths, at, types) = (values.numbers(0), values.numbers(1), values.types(2));
    // Bound markers (`lb`, `ub`) are allowed only in the struct call of MPI-1.
    if types.iter().any(|ty| ty.as_named().is_some_and(|named| named.is_marker())) {
        return Datatype::type_struct(lengths, at, types, Binding::C);
    }
    Datatype::structured(lengths, at, types)
}

fn darray(values: &Values) -> Result<Datatype> {
    let distributions: Vec<Distribution> =
        values.numbers(3).iter().map(distribution).collect::<Result<_>>()?;
    Datatype::darray(
        values.small(0, "size")?,
        values.small(1, "rank")?,
        values.numbers(2),
        &distributions,
        &values.smalls(4, "arguments")?,
        &values.smalls(5, "processes")?,
        values.order(6),
        values.ty(7),
    )
}

fn value_index(values: &Values) -> Result<Datatype> {
    let (value, index) = (values.ty(0), values.ty(1));
    Datatype::get_value_index(value, index)?.ok_or_else(|| {
        let [value, index] = [value, index].map(crate::text::abridge);
        let detail = format!("MPI has no pair type of {value} and {index}");
        Error::new(ErrorKind::Type, "value", detail)
    })
}

/// A constructor: its name, its parameters, and the function that makes a type from their values.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) parameters: &'static [Parameter],
    pub(crate) make: fn(&Values) -> Result<Datatype>,
}

/// All constructors, one row each.
pub(crate) static ROWS: &[Row] = &[
    Row { name: "dup", parameters: &[OLD], make: |v| Ok(v.ty(0).dup()) },
    Row {
        name: "contiguous",
        parameters: &[number("count"), OLD],
        make: |v| Datatype::contiguous(v.number(0), v.ty(1)),
    },
    Row {
        name: "vector",
        parameters: &[number("count"), number("blocklength"), number("stride"), OLD],
        make: |v| Datatype::vector(v.number(0), v.number(1), v.number(2), v.ty(3)),
    },
    Row {
        name: "hvector",
        parameters: &[number("count"), number("blocklength"), number("stride"), OLD],
        make: |v| Datatype::hvector(v.number(0), v.number(1), v.number(2), v.ty(3)),
    },
    Row {
        name: "indexed",
        parameters: &[numbers("blocklengths"), numbers("displacements"), OLD],
        make: |v| Datatype::indexed(v.numbers(0), v.numbers(1), v.ty(2)),
    },
    Row {
        name: "hindexed",
        parameters: &[numbers("blocklengths"), numbers("displacements"), OLD],
        make: |v| Datatype::hindexed(v.numbers(0), v.numbers(1), v.ty(2)),
    },
    Row {
        name: "indexed_block",
        parameters: &[number("blocklength"), numbers("displacements"), OLD],
        make: |v| Datatype::indexed_block(v.number(0), v.numbers(1), v.ty(2)),
    },
    Row {
        name: "hindexed_block",
        parameters: &[number("blocklength"), numbers("displacements"), OLD],
        make: |v| Datatype::hindexed_block(v.number(0), v.numbers(1), v.ty(2)),
    },
    Row {
        name: "struct",
        parameters: &[numbers("blocklengths"), numbers("displacements"), TYPES],
        make: structured,
    },
    Row {
        name: "subarray",
        parameters: &[numbers("sizes"), numbers("subsizes"), numbers("starts"), ORDER, OLD],
        make: |v| Datatype::subarray(v.numbers(0), v.numbers(1), v.numbers(2), v.order(3), v.ty(4)),
    },
    Row {
        name: "resized",
        parameters: &[number("lb"), number("extent"), OLD],
        make: |v| Datatype::resized(v.number(0), v.number(1), v.ty(2)),
    },
    Row {
        name: "darray",
        parameters: &[
            number("size"),
            number("rank"),
            numbers("sizes"),
            DISTRIBUTIONS,
            ARGUMENTS,
            numbers("processes"),
            ORDER,
            OLD,
        ],
        make: darray,
    },
    Row {
        name: "f90_real",
        parameters: &[digits("precision"), digits("range")],
        make: |v| Datatype::f90_real(v.given(0, "precision")?, v.given(1, "range")?),
    },
    Row {
        name: "f90_complex",
        parameters: &[digits("precision"), digits("range")],
        make: |v| Datatype::f90_complex(v.given(0, "precision")?, v.given(1, "range")?),
    },
    Row {
        name: "f90_integer",
        parameters: &[number("range")],
        make: |v| Datatype::f90_integer(v.small(0, "range")?),
    },
    Row { name: "value_index", parameters: &[part("value"), part("index")], make: value_index },
];

/// Returns the constructor with the name `word`, or `None` if there is none. `word` is the name in the
/// table, or the C name, which is that name with `MPI_Type_` or `MPI_Type_create_` in front. Letter case
/// does not matter.
pub(crate) fn find(word: &str) -> Option<&'static Row> {
    let lower = word.to_ascii_lowercase();
    let short = lower.strip_prefix("mpi_type_").unwrap_or(&lower);
    let short = short.strip_prefix("create_").filter(|_| short != lower).unwrap_or(short);
    ROWS.iter().find(|row| row.name == short)
}

/// Returns the types that were passed to the call which made `ty`.
pub fn types(ty: &Datatype) -> Vec<&Datatype> {
    match ty.constructor() {
        Constructor::Composite { call, .. } => match &**call {
            Call::Darray(call) => vec![&call.old],
            Call::F90(_) => vec![],
            Call::ValueIndex { value, index } => vec![value, index],
        },
        constructor => constructor.children().iter().collect(),
    }
}

/// Returns the names of the parameters of the constructor `name`. Returns no names if no constructor
/// has the name `name`.
pub fn parameters(name: &str) -> impl Iterator<Item = &'static str> {
    let row = ROWS.iter().find(|row| row.name == name);
    row.into_iter().flat_map(|row| row.parameters.iter().map(|parameter| parameter.name))
}

/// An argument of a call that made a type.
pub enum Argument<'a> {
    /// A number.
    Number(i64),
    /// A word that stands for a number, such as `undefined`.
    Word(&'static str),
    /// A list of numbers that the tree stores as a table.
    Table(&'a Table),
    /// A list of numbers that the tree stores as a slice.
    Numbers(&'a [i64]),
    /// A single type: the old type, or a member of a value-index pair.
    Type(&'a Datatype),
    /// A list of types, which only a struct has.
    Types(&'a [Datatype]),
    /// A short list whose entries are already converted to text.
    Texts(Vec<String>),
}

/// Returns the arguments of the call that made a composite.
fn composite(call: &Call) -> Vec<Argument<'_>> {
    let digits = |number: i32| match number {
        UNDEFINED => Argument::Word("undefined"),
        number => Argument::Number(number.into()),
    };
    match call {
        Call::Darray(call) => {
            let word = |d: &Distribution| match d {
                Distribution::None => "none".to_owned(),
                Distribution::Block => "block".to_owned(),
                Distribution::Cyclic => "cyclic".to_owned(),
            };
            let argument = |&a: &i32| match a {
                DEFAULT_ARGUMENT => "default".to_owned(),
                a => a.to_string(),
            };
            vec![
                Argument::Number(call.size.into()),
                Argument::Number(call.rank.into()),
                Argument::Numbers(&call.sizes),
                Argument::Texts(call.distributions.iter().map(word).collect()),
                Argument::Texts(call.arguments.iter().map(argument).collect()),
                Argument::Texts(call.processes.iter().map(i32::to_string).collect()),
                order(call.order),
                Argument::Type(&call.old),
            ]
        }
        Call::F90(F90::Real { precision, range } | F90::Complex { precision, range }) => {
            vec![digits(*precision), digits(*range)]
        }
        Call::F90(F90::Integer { range }) => vec![digits(*range)],
        Call::ValueIndex { value, index } => vec![Argument::Type(value), Argument::Type(index)],
    }
}

fn order(order: Order) -> Argument<'static> {
    Argument::Word(match order {
        Order::C => "C",
        Order::Fortran => "Fortran",
    })
}

/// Returns the call that made `ty`: the name of the constructor and its arguments, in the order of the
/// row's parameters. Returns `None` for named types.
pub fn call(ty: &Datatype) -> Option<(&'static str, Vec<Argument<'_>>)> {
    use Argument::{Number, Numbers, Table, Type, Types};
    let constructor = ty.constructor();
    let arguments = match constructor {
        Constructor::Named(_) => return None,
        Constructor::Dup { old } => vec![Type(old)],
        Constructor::Contiguous { count, old } => vec![Number(*count), Type(old)],
        Constructor::Vector { count, blocklength, stride, old }
        | Constructor::Hvector { count, blocklength, stride, old } => {
            vec![Number(*count), Number(*blocklength), Number(*stride), Type(old)]
        }
        Constructor::Indexed { blocklengths, displacements, old }
        | Constructor::Hindexed { blocklengths, displacements, old } => {
            vec![Table(blocklengths), Table(displacements), Type(old)]
        }
        Constructor::IndexedBlock { blocklength, displacements, old }
        | Constructor::HindexedBlock { blocklength, displacements, old } => {
            vec![Number(*blocklength), Table(displacements), Type(old)]
        }
        Constructor::Struct { blocklengths, displacements, types } => {
            vec![Table(blocklengths), Table(displacements), Types(types)]
        }
        Constructor::Subarray { region, order: o, old } => {
            let [sizes, subsizes, starts] = region.parts();
            vec![Numbers(sizes), Numbers(subsizes), Numbers(starts), order(*o), Type(old)]
        }
        Constructor::Resized { lb, extent, old } => vec![Number(*lb), Number(*extent), Type(old)],
        Constructor::Composite { call, .. } => composite(call),
    };
    Some((constructor.name(), arguments))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::named::Named;

    /// Returns arguments that the constructor of `row` accepts. Most numbers are 1, and most lists
    /// consist of two ones.
    fn sample(row: &Row) -> Values {
        // The type is `int64_t`, because no named pair consists of two `int64_t`. For the members of a
        // named pair, `value_index` would return that pair instead of a composite.
        let int = || Datatype::named(Named::INT64_T);
        let value = |parameter: &Parameter| match parameter.kind {
            Kind::Number if parameter.name == "rank" => Value::Number(0),
            Kind::Number if !parameter.words_only => Value::Number(1),
            Kind::Number => Value::Number(parameter.words[0].1),
            Kind::Numbers if parameter.name == "starts" => Value::Numbers(vec![0; 2]),
            Kind::Numbers => {
                Value::Numbers(vec![parameter.words.first().map_or(1, |word| word.1); 2])
            }
            Kind::Type => Value::Type(int()),
            Kind::Types => Value::Types(vec![int(); 2]),
        };
        Values(row.parameters.iter().map(value).collect())
    }

    #[test]
    fn every_row_builds_and_is_called_back() {
        for row in ROWS {
            let ty = (row.make)(&sample(row)).unwrap();
            let (name, arguments) = call(&ty).unwrap();
            assert_eq!(name, row.name);
            assert_eq!(arguments.len(), row.parameters.len(), "{name}");
            for (argument, parameter) in arguments.iter().zip(row.parameters) {
                let fits = match argument {
                    Argument::Number(_) => parameter.kind == Kind::Number,
                    Argument::Word(word) => parameter.words.iter().any(|(w, _)| w == word),
                    Argument::Table(_) | Argument::Numbers(_) | Argument::Texts(_) => {
                        parameter.kind == Kind::Numbers
                    }
                    Argument::Type(_) => parameter.kind == Kind::Type,
                    Argument::Types(_) => parameter.kind == Kind::Types,
                };
                assert!(fits, "{name}: {}", parameter.name);
            }
        }
    }

    #[test]
    fn names_as_in_c() {
        for (word, name) in [
            ("MPI_Type_create_hindexed_block", "hindexed_block"),
            ("MPI_Type_vector", "vector"),
            ("mpi_type_dup", "dup"),
            ("Struct", "struct"),
        ] {
            assert_eq!(find(word).map(|row| row.name), Some(name));
        }
        assert!(find("create_struct").is_none());
        assert!(find("").is_none());
    }
}
