//! Makes the cases of fused copies that `driver.c` runs as AArch64 code.

use super::{array, level_text, line};
use std::fmt::Write as _;
use typepack_engine::Table;
use typepack_engine::kernel::{Level, LevelShape, TransferLeaf, TransferRun, TransferShape};
use typepack_jit::{Target, emit_transfer};

pub struct Transfer {
    name: String,
    levels: Vec<[Level; 2]>,
    runs: Vec<TransferRun>,
}

impl Transfer {
    fn is_long(&self) -> bool {
        self.runs.iter().any(|run| run.bytes > TransferShape::RUN_BYTES)
    }

    fn shape(&self) -> TransferShape {
        let kind = |level: &Level| match level {
            Level::Loop { .. } => LevelShape::Loop,
            Level::Table { entries, .. } if entries.width() == 4 => LevelShape::Table32,
            Level::Table { .. } => LevelShape::Table64,
        };
        TransferShape {
            levels: self.levels.iter().map(|[from, to]| [kind(from), kind(to)]).collect(),
            leaf: match self.is_long() {
                true => TransferLeaf::Long,
                false => TransferLeaf::Runs { runs: self.runs.as_slice().into() },
            },
        }
    }
}

/// Returns the cases: every length under loops and tables in source and destination; overlaps;
/// unequal blocks; five levels.
pub fn cases() -> Vec<Transfer> {
    let mut cases = Vec::new();
    let mut case = |name: String, levels, runs: &[(i64, i64, u64)]| {
        let runs = runs.iter().map(|&(from, to, bytes)| TransferRun { from, to, bytes }).collect();
        cases.push(Transfer { name, levels, runs });
    };
    let entries: Vec<i64> = (0..23).map(|i| i * 7 % 23 - 5).collect();
    for bytes in (1..=64).chain([65, 100, 127, 128, 129, 191, 192, 193, 1000_u64]) {
        let (s, d) = (bytes as i64 + 3, bytes as i64 + 1);
        let block = [(0, 0, bytes)];
        let narrow = Level::Table { entries: Table::new(&entries), scale: d };
        let wide = Level::Table { entries: Table::Wide(entries.as_slice().into()), scale: -s };
        case(format!("copy loops {bytes}"), vec![[line(23, s), line(23, d)]], &block);
        case(format!("copy to table {bytes}"), vec![[line(23, s), narrow.clone()]], &block);
        case(format!("copy tables {bytes}"), vec![[wide, narrow]], &block);
        case(format!("copy overlap {bytes}"), vec![[line(9, s), line(9, 5)]], &block);
        case(format!("copy nothing {bytes}"), vec![[line(0, s), line(0, d)]], &block);
    }
    let unequal = [(0, 0, 16), (16, 32, 8), (32, 40, 8), (40, 64, 16)];
    case("copy 24 B to 16 B".into(), vec![[line(7, 64), line(7, 96)]], &unequal);
    let far = [(-65_536, 65_528, 8), (65_472, -65_536, 64), (0, 0, 7), (3, 5, 9)];
    case("copy far".into(), vec![[line(3, 9), line(3, 100)]], &far);
    let table = |list: &[i64], scale| Level::Table { entries: Table::new(list), scale };
    let deep = vec![
        [line(2, 4000), line(2, -9000)],
        [table(&[3, -1, 2], 40), line(3, 700)],
        [line(2, -1000), table(&[5, 0], 90)],
        [line(1, 7), line(1, 9)],
        [line(5, 16), line(5, 24)],
    ];
    for bytes in [8, 12, 70] {
        case(format!("copy five levels {bytes}"), deep.clone(), &[(0, 0, bytes)]);
    }
    cases
}

/// Returns the part of `cases.h` that contains these cases.
pub fn header(cases: &[Transfer]) -> String {
    let (mut text, mut list) = (String::new(), String::new());
    for (i, case) in cases.iter().enumerate() {
        let code = emit_transfer(&case.shape(), Target::Aarch64).expect("the shape is compiled");
        array(&mut text, "unsigned char", &format!("copy_{i}"), code.iter());
        let mut levels = String::new();
        for (l, sides) in case.levels.iter().enumerate() {
            let [from, to] = [0, 1]
                .map(|side| level_text(&mut text, &format!("places_{i}_{l}_{side}"), &sides[side]));
            write!(levels, "{{{from}{to}}}, ").expect("writing to a string succeeds");
        }
        let runs: String = (case.runs.iter())
            .map(|run| format!("{{{}, {}, {}}}, ", run.from, run.to, run.bytes))
            .collect();
        writeln!(
            list,
            "    {{\"{}\", copy_{i}, sizeof copy_{i}, {}, {{{levels}}}, {}, {{{runs}}}, {}}},",
            case.name,
            case.levels.len(),
            case.runs.len(),
            i32::from(case.is_long()),
        )
        .expect("writing to a string succeeds");
    }
    format!("{text}static const struct pair_case pairs[] = {{\n{list}}};\n")
}
