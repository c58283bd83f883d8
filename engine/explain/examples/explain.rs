//! Explains a datatype (first command), or writes the gallery of the user guide (second command):
//!
//! `cargo run -p typepack-explain --example explain -- 'vector(4, 1, 4, double)' [COUNT] [--colour]`
//! `cargo run -p typepack-explain --example explain -- --gallery runtime/guide/explain`

use std::error::Error;
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::ExitCode;
use typepack_engine::{Datatype, Named, Order};
use typepack_explain as explain;

/// The datatypes of the gallery: file name, title, expression, number of elements, and a hint for
/// the reader.
const GALLERY: [(&str, &str, &str, u64, &str); 10] = [
    (
        "vector",
        "Vector",
        "vector(4, 2, 5, double)",
        1,
        "Rows are wrapped at the stride, so blocks stand below each other. The extent ends with the \
         last block, not with its row.",
    ),
    (
        "columns",
        "Columns of a matrix",
        "resized(0, 8, vector(4, 1, 6, double))",
        3,
        "The extent is one double, so neighbouring columns follow each other. Packed order runs down \
         the columns, and the three extents end one cell apart.",
    ),
    (
        "struct",
        "C struct with padding",
        "struct([1, 1, 1, 3], [0, 4, 8, 16], [char, int, double, short])",
        2,
        "Colours are basic types. The extent is padded to the largest alignment.",
    ),
    (
        "face",
        "Face of a three-dimensional array",
        "subarray([3, 4, 6], [2, 2, 3], [1, 1, 2], C, float)",
        1,
        "Each line shows one row of the array; a gap separates the planes. The extent is that of the whole \
         array.",
    ),
    (
        "indexed",
        "Blocks of unequal length, out of order",
        "indexed([3, 1, 2], [8, 0, 3], int)",
        1,
        "Packed order is the order of the list, not of memory.",
    ),
    (
        "overlap",
        "Blocks that overlap",
        "hvector(3, 4, 12, int)",
        1,
        "Hatched bytes are packed twice. Such a type may be sent, but must not be received.",
    ),
    (
        "interleaved",
        "Elements that interleave",
        "resized(0, 8, struct([1, 1], [0, 24], [double, int]))",
        3,
        "The extent is smaller than the span of an element, so the members of one element lie among \
         those of the others. That is right for two arrays side by side, and a common mistake otherwise.",
    ),
    (
        "large",
        "Large face",
        "subarray([130, 130, 130], [128, 128, 1], [1, 1, 1], C, double)",
        1,
        "The drawing shows the first and the last of 16384 blocks, and cuts the middle of long rows that \
         look alike.",
    ),
    (
        "pairs",
        "Value-index pairs",
        "contiguous(4, double_int)",
        1,
        "The named type MPI_DOUBLE_INT contains a hole.",
    ),
    (
        "milc",
        "Two levels that become one",
        "hvector(3, 1, 128, vector(2, 3, 8, contiguous(2, float)))",
        1,
        "The outer stride equals two inner strides, so the passes merge both levels into one loop; the \
         report shows how.",
    ),
];

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [option, folder] = &arguments[..]
        && option == "--gallery"
    {
        return gallery(Path::new(folder));
    }
    let colour = arguments.iter().position(|a| a == "--colour");
    if let Some(index) = colour {
        arguments.remove(index);
    }
    let (text, count) = match &arguments[..] {
        [text] => (text, 1),
        [text, count] => (text, count.parse()?),
        _ => return Err("usage: explain TYPE [COUNT] [--colour] | explain --gallery FOLDER".into()),
    };
    let ty = text.parse::<Datatype>().map_err(|error| error.render(text))?;
    let options = explain::Options { count, colour: colour.is_some(), ..Default::default() };
    print!("{}", explain::report(&ty, &options)?);
    Ok(())
}

fn gallery(folder: &Path) -> Result<(), Box<dyn Error>> {
    fs::create_dir_all(folder)?;
    let mut index = String::from(
        "# Ten layouts, explained\n\n\
         Colours are basic types, grey is a hole, hatched an overlap, numbers are the packed order, and \
         a dashed line is where an extent ends. Rows are memory, wrapped at a stride of the type; the \
         number before a row is the displacement of its first byte.\n\n\
         Written by `cargo run -p typepack-explain --example explain -- --gallery \
         runtime/guide/explain`; each text file is the whole report of its type.\n",
    );
    for (name, title, expression, count, note) in GALLERY {
        let ty = expression.parse::<Datatype>().map_err(|error| error.render(expression))?;
        let options = explain::Options { count, ..Default::default() };
        let report = explain::report(&ty, &options)?;
        fs::write(folder.join(format!("{name}.svg")), explain::svg(&ty, count))?;
        fs::write(folder.join(format!("{name}.txt")), &report)?;
        let times = if count == 1 { String::new() } else { format!(", count {count}") };
        let _ = write!(
            index,
            "\n## {title}\n\n`{expression}`{times} ([report]({name}.txt))\n\n{note}\n\n\
             ![{title}]({name}.svg)\n"
        );
        for advice in explain::advice(&ty.commit()?, count) {
            let _ = write!(index, "\n> {advice}\n");
        }
    }
    let starts = [[0, 0], [0, 6], [4, 0], [4, 6]];
    let quarter = |start: &[i64; 2]| {
        let double = Datatype::named(Named::DOUBLE);
        Ok::<_, Box<dyn Error>>((
            0,
            Datatype::subarray(&[8, 12], &[4, 6], start, Order::C, &double)?,
        ))
    };
    let ranks: Vec<_> = starts.iter().map(quarter).collect::<Result<_, _>>()?;
    let ranks = explain::FileRanks::new(&ranks, 1)?;
    fs::write(folder.join("file_view.svg"), ranks.svg())?;
    fs::write(folder.join("file_view.txt"), ranks.report(false)?)?;
    index.push_str(
        "\n## A file of four ranks\n\n`typepack explain --file-view 'subarray([8, 12], [4, 6], [{0|0|4|4}, \
         {0|6|0|6}], C, double)'` ([report](file_view.txt))\n\nColours are ranks: each of them has a block of \
         an array, and the file has the whole array. The numbers are positions in the view of the rank. [An \
         array in a file](../tutorial/array.md) has the program.\n\n![A file of four ranks](file_view.svg)\n",
    );
    fs::write(folder.join("README.md"), index)?;
    Ok(())
}
