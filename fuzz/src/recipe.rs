//! A recipe describes a datatype as plain data: a tree of constructor calls that have not been made
//! yet.
//!
//! `generate.rs` and `parse.rs` make recipes, `shrink.rs` simplifies them, `model.rs` computes what the
//! standard says about them, and [`Recipe::build`] builds the engine's datatype. A recipe prints as one
//! line, for example `resized(-8, 64, vector(2, 1, -2, double))`. `parse.rs` reads such a line, so the
//! line from a failure message can become a line of a regression file.
//!
//! In such a line, the element type is the last argument of a call, and the order of the dimensions is
//! the first argument of `subarray` and `darray`. A block of an indexed type is written as
//! `blocklength@displacement`. A member of a struct is written as such a block, followed by the type of
//! the member. A dimension of a subarray is written as `size:subsize@start`. A dimension of a distributed
//! array is written as `size:distribution/argument/processes`, in which `distribution` is `none`, `block`
//! or `cyclic`, and `argument` is a number or `default`. A named type is written as its MPI name in lower
//! case, without the prefix `MPI_`.

use std::fmt;
use typepack_engine::{
    Binding, Combiner, DEFAULT_ARGUMENT, Datatype, Distribution, Named, Order, Result,
};

/// A tree of constructor calls.
#[derive(Clone, Debug, PartialEq)]
pub enum Recipe {
    /// A named type.
    Named(Named),
    /// `MPI_Type_contiguous`
    Contiguous {
        /// Number of elements.
        count: i64,
        /// The element type.
        old: Box<Recipe>,
    },
    /// `MPI_Type_vector`; `MPI_Type_create_hvector` if `bytes` is true.
    Vector {
        /// True if the stride is in bytes, false if it is in extents of `old`.
        bytes: bool,
        /// Number of blocks.
        count: i64,
        /// Elements per block.
        blocklength: i64,
        /// The distance between the starts of consecutive blocks.
        stride: i64,
        /// The element type.
        old: Box<Recipe>,
    },
    /// `MPI_Type_indexed`; `MPI_Type_create_hindexed` if `bytes` is true.
    Indexed {
        /// True if displacements are in bytes, false if they are in extents of `old`.
        bytes: bool,
        /// The blocks in order.
        blocks: Vec<Block>,
        /// The element type.
        old: Box<Recipe>,
    },
    /// `MPI_Type_create_indexed_block`; `MPI_Type_create_hindexed_block` if `bytes` is true.
    IndexedBlock {
        /// True if displacements are in bytes, false if they are in extents of `old`.
        bytes: bool,
        /// Elements per block.
        blocklength: i64,
        /// The start of each block.
        displacements: Vec<i64>,
        /// The element type.
        old: Box<Recipe>,
    },
    /// `MPI_Type_create_struct`, or `MPI_Type_struct` of MPI-1.
    Struct {
        /// The call that makes the struct.
        call: StructCall,
        /// The members in order.
        members: Vec<(Block, Recipe)>,
    },
    /// `MPI_Type_create_subarray`
    Subarray {
        /// The order of the dimensions in memory.
        order: Order,
        /// The dimensions.
        dimensions: Vec<Dimension>,
        /// The element type.
        old: Box<Recipe>,
    },
    /// `MPI_Type_create_darray`, for a group that has as many processes as the grid.
    Darray {
        /// The order of the dimensions in memory.
        order: Order,
        /// The rank of the process whose share of the array the type describes.
        rank: i32,
        /// The dimensions.
        dimensions: Vec<Spread>,
        /// The element type.
        old: Box<Recipe>,
    },
    /// `MPI_Type_create_f90_real`, `_complex` or `_integer`.
    F90(F90),
    /// `MPI_Type_get_value_index`
    ValueIndex {
        /// The type of the value.
        value: Named,
        /// The type of the index.
        index: Named,
    },
    /// `MPI_Type_create_resized`
    Resized {
        /// The new lower bound in bytes.
        lb: i64,
        /// The new extent in bytes.
        extent: i64,
        /// The type whose bounds are replaced.
        old: Box<Recipe>,
    },
    /// `MPI_Type_dup`
    Dup {
        /// The type to duplicate.
        old: Box<Recipe>,
    },
}

/// One block of an indexed type or one member of a struct.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// Number of elements.
    pub blocklength: i64,
    /// Start of the block, in extents of the element type or in bytes, depending on the call.
    pub displacement: i64,
}

/// One dimension of a subarray. All numbers are in elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dimension {
    /// Length of the whole array in this dimension.
    pub size: i64,
    /// Length of the part in this dimension.
    pub subsize: i64,
    /// Start of the part in this dimension.
    pub start: i64,
}

/// The call that makes a struct.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StructCall {
    /// `MPI_Type_create_struct`
    Create,
    /// `MPI_Type_struct` in C, which accepts bound markers among its members.
    Mpi1,
    /// `MPI_TYPE_STRUCT` in Fortran.
    Fortran,
}

/// One dimension of a distributed array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spread {
    /// Number of elements of the whole array in this dimension.
    pub size: i64,
    /// How the elements are distributed.
    pub distribution: Distribution,
    /// Elements per block, or [`DEFAULT_ARGUMENT`].
    pub argument: i32,
    /// Number of processes in this dimension of the grid.
    pub processes: i32,
}

/// The arguments of a Fortran 90 type. `None` stands for `MPI_UNDEFINED`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum F90 {
    /// A real type with this many decimal digits and this decimal exponent range.
    Real(Option<i32>, Option<i32>),
    /// A complex type whose parts have this many decimal digits and this decimal exponent range.
    Complex(Option<i32>, Option<i32>),
    /// An integer type with this many decimal digits.
    Integer(i32),
}

/// Returns true if `recipe` is a bound marker of MPI-1.
pub fn is_marker(recipe: &Recipe) -> bool {
    matches!(recipe, Recipe::Named(named) if named.is_marker())
}

impl Recipe {
    /// Builds the datatype with the engine's constructors.
    pub fn build(&self) -> Result<Datatype> {
        match self {
            Self::Named(named) => Ok(Datatype::named(*named)),
            Self::Contiguous { count, old } => Datatype::contiguous(*count, &old.build()?),
            Self::Vector { bytes, count, blocklength, stride, old } => {
                let make = if *bytes { Datatype::hvector } else { Datatype::vector };
                make(*count, *blocklength, *stride, &old.build()?)
            }
            Self::Indexed { bytes, blocks, old } => {
                let lengths: Vec<i64> = blocks.iter().map(|b| b.blocklength).collect();
                let displacements: Vec<i64> = blocks.iter().map(|b| b.displacement).collect();
                let make = if *bytes { Datatype::hindexed } else { Datatype::indexed };
                make(&lengths, &displacements, &old.build()?)
            }
            Self::IndexedBlock { bytes, blocklength, displacements, old } => {
                let make = if *bytes { Datatype::hindexed_block } else { Datatype::indexed_block };
                make(*blocklength, displacements, &old.build()?)
            }
            Self::Struct { call, members } => {
                let lengths: Vec<i64> = members.iter().map(|(b, _)| b.blocklength).collect();
                let displacements: Vec<i64> = members.iter().map(|(b, _)| b.displacement).collect();
                let types =
                    members.iter().map(|(_, old)| old.build()).collect::<Result<Vec<_>>>()?;
                let mpi1 =
                    |binding| Datatype::type_struct(&lengths, &displacements, &types, binding);
                match call {
                    StructCall::Create => Datatype::structured(&lengths, &displacements, &types),
                    StructCall::Mpi1 => mpi1(Binding::C),
                    StructCall::Fortran => mpi1(Binding::Fortran),
                }
            }
            Self::Subarray { order, dimensions, old } => {
                let list = |part: fn(&Dimension) -> i64| -> Vec<i64> {
                    dimensions.iter().map(part).collect()
                };
                let (sizes, subsizes) = (list(|d| d.size), list(|d| d.subsize));
                let starts = list(|d| d.start);
                Datatype::subarray(&sizes, &subsizes, &starts, *order, &old.build()?)
            }
            Self::Darray { order, rank, dimensions, old } => {
                let list = |part: fn(&Spread) -> i32| -> Vec<i32> {
                    dimensions.iter().map(part).collect()
                };
                let sizes: Vec<i64> = dimensions.iter().map(|d| d.size).collect();
                let kinds: Vec<Distribution> = dimensions.iter().map(|d| d.distribution).collect();
                let (arguments, processes) = (list(|d| d.argument), list(|d| d.processes));
                let old = old.build()?;
                let size = processes.iter().product();
                Datatype::darray(size, *rank, &sizes, &kinds, &arguments, &processes, *order, &old)
            }
            Self::F90(F90::Real(precision, range)) => Datatype::f90_real(*precision, *range),
            Self::F90(F90::Complex(precision, range)) => Datatype::f90_complex(*precision, *range),
            Self::F90(F90::Integer(range)) => Datatype::f90_integer(*range),
            Self::ValueIndex { value, index } => {
                let types = [Datatype::named(*value), Datatype::named(*index)];
                match Datatype::get_value_index(&types[0], &types[1])? {
                    Some(pair) => Ok(pair),
                    // If the pair does not exist, `get_value_index` returns `None` instead of an error.
                    // `from_contents` tries to build the same type, and returns the error.
                    None => Datatype::from_contents(Combiner::VALUE_INDEX, &[], &[], &[], &types),
                }
            }
            Self::Resized { lb, extent, old } => Datatype::resized(*lb, *extent, &old.build()?),
            Self::Dup { old } => Ok(old.build()?.dup()),
        }
    }

    /// Returns the element types, in order; an empty list if the call has no element type.
    pub fn children(&self) -> Vec<&Recipe> {
        match self {
            Self::Named(_) | Self::F90(_) | Self::ValueIndex { .. } => Vec::new(),
            Self::Struct { members, .. } => members.iter().map(|(_, old)| old).collect(),
            Self::Contiguous { old, .. }
            | Self::Vector { old, .. }
            | Self::Indexed { old, .. }
            | Self::IndexedBlock { old, .. }
            | Self::Subarray { old, .. }
            | Self::Darray { old, .. }
            | Self::Resized { old, .. }
            | Self::Dup { old } => vec![old],
        }
    }

    /// Returns a copy of this call with `children` as its element types. `children` must have as many
    /// entries as the list that [`Recipe::children`] returns.
    pub fn with_children(&self, children: Vec<Recipe>) -> Recipe {
        let mut recipe = self.clone();
        let mut children = children.into_iter();
        match &mut recipe {
            Self::Named(_) | Self::F90(_) | Self::ValueIndex { .. } => {}
            Self::Struct { members, .. } => {
                for ((_, old), new) in members.iter_mut().zip(children) {
                    *old = new;
                }
            }
            Self::Contiguous { old, .. }
            | Self::Vector { old, .. }
            | Self::Indexed { old, .. }
            | Self::IndexedBlock { old, .. }
            | Self::Subarray { old, .. }
            | Self::Darray { old, .. }
            | Self::Resized { old, .. }
            | Self::Dup { old } => {
                if let Some(new) = children.next() {
                    **old = new;
                }
            }
        }
        recipe
    }
}

/// Returns the word for a named type, for example `long_int` for `MPI_LONG_INT`.
pub fn word(named: Named) -> String {
    named.name().trim_start_matches("MPI_").to_ascii_lowercase()
}

fn list<T>(items: &[T], text: impl Fn(&T) -> String) -> String {
    let items: Vec<String> = items.iter().map(text).collect();
    format!("[{}]", items.join(", "))
}

impl fmt::Display for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.blocklength, self.displacement)
    }
}

impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let distribution = match self.distribution {
            Distribution::None => "none",
            Distribution::Block => "block",
            Distribution::Cyclic => "cyclic",
        };
        write!(f, "{}:{distribution}/", self.size)?;
        match self.argument {
            DEFAULT_ARGUMENT => f.write_str("default")?,
            argument => write!(f, "{argument}")?,
        }
        write!(f, "/{}", self.processes)
    }
}

fn given(number: Option<i32>) -> String {
    number.map_or("undefined".into(), |number| number.to_string())
}

impl fmt::Display for Recipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let h = |bytes: &bool| if *bytes { "h" } else { "" };
        match self {
            Self::Named(named) => f.write_str(&word(*named)),
            Self::Contiguous { count, old } => write!(f, "contiguous({count}, {old})"),
            Self::Vector { bytes, count, blocklength, stride, old } => {
                write!(f, "{}vector({count}, {blocklength}, {stride}, {old})", h(bytes))
            }
            Self::Indexed { bytes, blocks, old } => {
                write!(f, "{}indexed({}, {old})", h(bytes), list(blocks, Block::to_string))
            }
            Self::IndexedBlock { bytes, blocklength, displacements, old } => {
                let displacements = list(displacements, i64::to_string);
                write!(f, "{}indexed_block({blocklength}, {displacements}, {old})", h(bytes))
            }
            Self::Struct { call, members } => {
                let name = match call {
                    StructCall::Create => "struct",
                    StructCall::Mpi1 => "mpi1_struct",
                    StructCall::Fortran => "fortran_struct",
                };
                write!(f, "{name}({})", list(members, |(block, old)| format!("{block} {old}")))
            }
            Self::Subarray { order, dimensions, old } => {
                let order = if *order == Order::C { "c" } else { "fortran" };
                let dimensions =
                    list(dimensions, |d| format!("{}:{}@{}", d.size, d.subsize, d.start));
                write!(f, "subarray({order}, {dimensions}, {old})")
            }
            Self::Darray { order, rank, dimensions, old } => {
                let order = if *order == Order::C { "c" } else { "fortran" };
                write!(f, "darray({order}, {rank}, {}, {old})", list(dimensions, Spread::to_string))
            }
            Self::F90(F90::Real(precision, range)) => {
                write!(f, "f90_real({}, {})", given(*precision), given(*range))
            }
            Self::F90(F90::Complex(precision, range)) => {
                write!(f, "f90_complex({}, {})", given(*precision), given(*range))
            }
            Self::F90(F90::Integer(range)) => write!(f, "f90_integer({range})"),
            Self::ValueIndex { value, index } => {
                write!(f, "value_index({}, {})", word(*value), word(*index))
            }
            Self::Resized { lb, extent, old } => write!(f, "resized({lb}, {extent}, {old})"),
            Self::Dup { old } => write!(f, "dup({old})"),
        }
    }
}
