//! A datatype as plain data: the constructor calls, before the engine sees them.
//!
//! Made by `generate.rs` and `parse.rs`, changed by `shrink.rs`, described by `model.rs`, built by
//! [`Recipe::build`]. Its text is one line that `parse.rs` reads back, so that a failure message
//! is a regression file: `resized(-8, 64, vector(2, 1, -2, double))`. Arguments stand in the
//! standard's order; a block is written `blocklength@displacement`, a dimension of a subarray
//! `size:subsize@start`; a named type is its MPI name without the prefix, in lower case.

use std::fmt;
use typepack_engine::{Datatype, Named, Order, Result};

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
    /// `MPI_Type_vector`, or `MPI_Type_create_hvector` when `bytes`.
    Vector {
        /// Is the stride in bytes, or in extents of `old`?
        bytes: bool,
        /// Number of blocks.
        count: i64,
        /// Elements per block.
        blocklength: i64,
        /// Distance of block starts.
        stride: i64,
        /// The element type.
        old: Box<Recipe>,
    },
    /// `MPI_Type_indexed`, or `MPI_Type_create_hindexed` when `bytes`.
    Indexed {
        /// Are displacements in bytes, or in extents of `old`?
        bytes: bool,
        /// The blocks in order.
        blocks: Vec<Block>,
        /// The element type.
        old: Box<Recipe>,
    },
    /// `MPI_Type_create_indexed_block`, or `MPI_Type_create_hindexed_block` when `bytes`.
    IndexedBlock {
        /// Are displacements in bytes, or in extents of `old`?
        bytes: bool,
        /// Elements per block.
        blocklength: i64,
        /// Block starts.
        displacements: Vec<i64>,
        /// The element type.
        old: Box<Recipe>,
    },
    /// `MPI_Type_create_struct`
    Struct {
        /// The members in order.
        members: Vec<(Block, Recipe)>,
    },
    /// `MPI_Type_create_subarray`
    Subarray {
        /// Which dimension varies fastest.
        order: Order,
        /// The dimensions.
        dimensions: Vec<Dimension>,
        /// The element type.
        old: Box<Recipe>,
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
    /// Start, in extents of the element type or in bytes.
    pub displacement: i64,
}

/// One dimension of a subarray, in elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dimension {
    /// Length of the whole array.
    pub size: i64,
    /// Length of the part.
    pub subsize: i64,
    /// Where the part starts.
    pub start: i64,
}

impl Recipe {
    /// Calls the engine's constructors.
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
            Self::Struct { members } => {
                let lengths: Vec<i64> = members.iter().map(|(b, _)| b.blocklength).collect();
                let displacements: Vec<i64> = members.iter().map(|(b, _)| b.displacement).collect();
                let types =
                    members.iter().map(|(_, old)| old.build()).collect::<Result<Vec<_>>>()?;
                Datatype::structured(&lengths, &displacements, &types)
            }
            Self::Subarray { order, dimensions, old } => {
                let list = |part: fn(&Dimension) -> i64| -> Vec<i64> {
                    dimensions.iter().map(part).collect()
                };
                let (sizes, subsizes) = (list(|d| d.size), list(|d| d.subsize));
                let starts = list(|d| d.start);
                Datatype::subarray(&sizes, &subsizes, &starts, *order, &old.build()?)
            }
            Self::Resized { lb, extent, old } => Datatype::resized(*lb, *extent, &old.build()?),
            Self::Dup { old } => Ok(old.build()?.dup()),
        }
    }

    /// The element types, in order; empty for a named type.
    pub fn children(&self) -> Vec<&Recipe> {
        match self {
            Self::Named(_) => Vec::new(),
            Self::Struct { members } => members.iter().map(|(_, old)| old).collect(),
            Self::Contiguous { old, .. }
            | Self::Vector { old, .. }
            | Self::Indexed { old, .. }
            | Self::IndexedBlock { old, .. }
            | Self::Subarray { old, .. }
            | Self::Resized { old, .. }
            | Self::Dup { old } => vec![old],
        }
    }

    /// The same call with other element types; `children` must have as many entries as
    /// [`Recipe::children`].
    pub fn with_children(&self, children: Vec<Recipe>) -> Recipe {
        let mut recipe = self.clone();
        let mut children = children.into_iter();
        match &mut recipe {
            Self::Named(_) => {}
            Self::Struct { members } => {
                for ((_, old), new) in members.iter_mut().zip(children) {
                    *old = new;
                }
            }
            Self::Contiguous { old, .. }
            | Self::Vector { old, .. }
            | Self::Indexed { old, .. }
            | Self::IndexedBlock { old, .. }
            | Self::Subarray { old, .. }
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

/// The text of a named type: `MPI_LONG_INT` is `long_int`.
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
            Self::Struct { members } => {
                write!(f, "struct({})", list(members, |(block, old)| format!("{block} {old}")))
            }
            Self::Subarray { order, dimensions, old } => {
                let order = if *order == Order::C { "c" } else { "fortran" };
                let dimensions =
                    list(dimensions, |d| format!("{}:{}@{}", d.size, d.subsize, d.start));
                write!(f, "subarray({order}, {dimensions}, {old})")
            }
            Self::Resized { lb, extent, old } => write!(f, "resized({lb}, {extent}, {old})"),
            Self::Dup { old } => write!(f, "dup({old})"),
        }
    }
}
