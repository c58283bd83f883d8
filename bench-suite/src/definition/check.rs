//! Finds the faults of a layout's shape (`shape.rs`) when the definitions file is read. Describes each
//! fault in a one-line message.

use super::MOST_BYTES;
use super::shape::{
    Blocks, Face, IndexList, List, Loops, Number, Record, ShapeDefinition, TextShape,
};

impl Number {
    fn check(&self, name: &str) -> Result<(), String> {
        match self {
            Self::Fixed(0) => Err(format!("{name} is 0; it must be at least 1")),
            Self::Word(word) if word != "n" => {
                Err(format!("{name} is \"{word}\"; it must be a number or \"n\""))
            }
            Self::Fixed(_) | Self::Word(_) => Ok(()),
        }
    }
}

impl ShapeDefinition {
    pub(super) fn check(&self) -> Result<(), String> {
        match self {
            Self::Blocks(Blocks { block, stride, element }) => {
                let unit = element.bytes();
                if *block == 0 || !block.is_multiple_of(unit) || *block > MOST_BYTES {
                    return Err(format!(
                        "block is {block}; it must be a multiple of {unit} from {unit} to {MOST_BYTES}"
                    ));
                }
                if !stride.is_multiple_of(unit) || stride < block || *stride > MOST_BYTES {
                    return Err(format!(
                        "stride is {stride}; it must be a multiple of {unit} from {block} (the block) to {MOST_BYTES}"
                    ));
                }
            }
            Self::Face(Face { edge, halo, .. }) => {
                if !(1..=1024).contains(edge) {
                    return Err(format!("edge = {edge} is not between 1 and 1024"));
                }
                if *halo == 0 || halo > edge {
                    return Err(format!("halo = {halo} is not between 1 and {edge}, the edge"));
                }
            }
            Self::Record(Record::CharIntDouble | Record::Particle) => {}
            Self::List(List { longest, gap, arrays, .. }) => {
                for (name, value) in [("longest", longest), ("gap", gap), ("arrays", arrays)] {
                    if !(1..=MOST_ENTRIES).contains(value) {
                        return Err(format!(
                            "{name} = {value} is not between 1 and {MOST_ENTRIES}"
                        ));
                    }
                }
            }
            Self::Text(text) => text.check()?,
        }
        Ok(())
    }
}

/// The largest allowed value of `longest`, `gap` and `arrays` of a list.
const MOST_ENTRIES: u64 = 1024;

impl TextShape {
    fn check(&self) -> Result<(), String> {
        self.count.check("count")?;
        let sized = self.expression.contains("{n}") || matches!(self.count, Number::Word(_));
        match self.unit {
            None if sized => {
                return Err("type or count contains n, but unit is missing".to_owned());
            }
            Some(0) => return Err("unit is 0; it must be at least 1".to_owned()),
            Some(unit) if !sized => {
                return Err(format!(
                    "unit = {unit} is given, but neither type nor count contains n"
                ));
            }
            _ => {}
        }
        for IndexList { name, count, below, times } in &self.lists {
            if name == "n" {
                return Err(
                    "list n: the name n stands for the size, so the list must have another name"
                        .to_owned(),
                );
            }
            if !self.expression.contains(&format!("{{{name}}}")) {
                return Err(format!("list {name}: the type must contain {{{name}}}"));
            }
            if !(1..=MOST_INDICES).contains(below) || count > below || *count == 0 {
                return Err(format!(
                    "list {name}: count is {count} and below is {below}; count must be between 1 \
                     and below, and below must be at most {MOST_INDICES}"
                ));
            }
            if !(1..=MOST_BYTES).contains(times) {
                return Err(format!(
                    "list {name}: times = {times} is not between 1 and {MOST_BYTES}"
                ));
            }
        }
        // Parses the expression for `n` = 1 only, because a fault in the expression shows for every value
        // of `n`.
        self.datatype(1)?;
        self.hand.iter().try_for_each(|hand| self.check_hand(hand))
    }

    fn check_hand(&self, hand: &Loops) -> Result<(), String> {
        let sizes = [
            ("block", 1, hand.block),
            ("start", 0, hand.start),
            ("start_per_n", 0, hand.start_per_n),
        ];
        for (name, least, value) in sizes {
            if !(least..=MOST_BYTES).contains(&value) {
                return Err(format!(
                    "hand: {name} = {value} is not between {least} and {MOST_BYTES}"
                ));
            }
        }
        if let Some(name) = &hand.list {
            return match self.list(name) {
                None => Err(format!("hand: the layout has no list {name}")),
                Some(_) if !hand.loops.is_empty() => Err(format!(
                    "hand: both loops and list {name} are given; only one of them is allowed"
                )),
                Some(_) if !(1..=MOST_BYTES).contains(&hand.unit) => {
                    Err(format!("hand: unit = {} is not between 1 and {MOST_BYTES}", hand.unit))
                }
                Some(_) => Ok(()),
            };
        }
        if !(1..=3).contains(&hand.loops.len()) {
            return Err(format!(
                "hand: the number of loops is {}; it must be 1 to 3",
                hand.loops.len()
            ));
        }
        hand.loops.iter().try_for_each(|(count, stride)| {
            if *stride > MOST_BYTES {
                return Err(format!(
                    "hand: a loop has a stride of {stride} bytes; it must be at most {MOST_BYTES}"
                ));
            }
            count.check("hand: the count of a loop")
        })
    }
}

/// The largest allowed value of `below`: the number of indices from which a list chooses.
const MOST_INDICES: u64 = 1 << 24;
