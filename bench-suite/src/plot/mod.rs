//! Draws a record as SVG pictures.
//!
//! `record.rs` reads the record. `subject.rs` turns its tables into rows of one form: packing, messages, collectives,
//! one-sided communication, the interposer, files. For each of them, `bandwidth.rs` draws bandwidth against size, and
//! `speedup.rs` draws the ratios to the best peer and to others, including all losses. `break_even.rs` draws the
//! number of uses that repay a compilation. `axis.rs` has the code that these files share. The same
//! record always gives byte-identical pictures. The pictures have a white background, so that they are
//! readable on dark pages, too.

mod axis;
mod bandwidth;
mod break_even;
mod speedup;
mod subject;

use crate::record::Record;

/// One picture.
pub struct Picture {
    /// The file name of the picture.
    pub name: String,
    /// The SVG text.
    pub text: String,
}

/// Draws every picture for which `record` contains the data.
///
/// # Errors
///
/// Returns a one-line message if the drawing library fails.
pub fn pictures(record: &Record) -> Result<Vec<Picture>, String> {
    let mut list = Vec::new();
    let mut add = |name: String, drawn: Result<Option<String>, String>| {
        if let Some(text) = drawn.map_err(|e| format!("{name}: {e}"))? {
            list.push(Picture { name, text });
        }
        Ok::<(), String>(())
    };
    for subject in subject::all(record) {
        if let Some(name) = &subject.bandwidth {
            add(format!("{name}.svg"), bandwidth::svg(record, &subject))?;
        }
        if let Some(name) = &subject.ratios {
            add(format!("{name}.svg"), speedup::svg(record, &subject))?;
        }
    }
    add("break-even.svg".to_owned(), break_even::svg(record))?;
    Ok(list)
}

#[cfg(test)]
mod tests {
    use super::pictures;
    use crate::record::Record;

    fn record() -> String {
        let mut text =
            String::from("# cpu: some\nrow,class,size,bytes,part,competitor,ns,spread\n");
        let figures = [("memcpy", 100), ("typepack", 200), ("hand", 160), ("mpich", 400)];
        for (layout, class) in [("d1s2", "plain"), ("struct", "gapped"), ("cols64", "transpose")] {
            for size in [128, 1024, 16384] {
                for direction in ["pack", "unpack"] {
                    for (name, ns) in figures {
                        let row = format!("{layout},{class},{size},{size},{direction}");
                        text += &format!("{row},{name},{},1\n", ns * size);
                    }
                }
            }
        }
        text += "# typepack-bench regret\nlayout,bytes,uses,never_ns,at_once_ns,policy_ns,steady\n";
        for (uses, never, once) in [(1, 2000.0, 90_000.0), (1000, 1_000_000.0, 500_000.0)] {
            text += &format!("d1s2,1024,{uses},{never},{once},{never},true\n");
        }
        text
    }

    #[test]
    fn every_table_is_drawn_the_same_way_each_time() {
        let record = Record::parse(&record()).expect("a record");
        let list = pictures(&record).expect("pictures");
        let names: Vec<&str> = list.iter().map(|picture| picture.name.as_str()).collect();
        let wanted = [
            "bandwidth-pack.svg",
            "speedup-pack.svg",
            "bandwidth-unpack.svg",
            "speedup-unpack.svg",
            "break-even.svg",
        ];
        assert_eq!(names, wanted);
        for (one, other) in list.iter().zip(pictures(&record).expect("pictures")) {
            assert!(one.text.starts_with("<svg") && one.text.len() < 150_000, "{}", one.name);
            assert_eq!(one.text, other.text, "{}", one.name);
        }
        // The picture `list[1]` shows the ratios for packing. In the record, typepack's ratio to the hand
        // loop is 20 / 25. This is a loss, which the picture must also state as a number.
        assert!(list[1].text.contains("0.80"), "{}", list[1].text);
    }

    #[test]
    fn a_record_of_files_is_drawn_with_gaps() {
        let mut text = String::from(
            "# cpu: some\n# typepack-bench io\n# load of other programs, io: not usable: load 12\n\
             row,class,size,part,bytes,competitor,ns,spread,over\n",
        );
        for block in [8, 64, 512] {
            for name in ["typepack", "mpich", "loop-kept"] {
                // The peer is too slow for the smaller blocks.
                let figures = match (block, name) {
                    (8, "mpich") => "20000000000,1,over",
                    _ => "700,1,",
                };
                let row = format!("{block}B-read-collective,fine,{block},read-collective,1000");
                text += &format!("{row},{name},{figures}\n");
            }
        }
        let list = pictures(&Record::parse(&text).expect("a record")).expect("pictures");
        let names: Vec<&str> = list.iter().map(|picture| picture.name.as_str()).collect();
        assert_eq!(names, ["io-read.svg"]);
        // Typepack and the loop have three points each, and the peer has two.
        assert_eq!(list[0].text.matches("<circle").count(), 8, "{}", list[0].text);
        assert!(list[0].text.contains("64 B") && list[0].text.contains("not usable: load 12"));
    }

    #[test]
    fn messages_and_their_relatives_have_the_same_two_pictures() {
        let header = "row,class,part,bytes,touched,line_ns,line_spread,competitor,ns,spread\n";
        let table = |name: &str, rows: &[&str], memories: &[&str], libraries: &[&str]| {
            let mut text = format!("# cpu: some\n# typepack-bench {name}\n{header}");
            for (row, memory) in rows.iter().flat_map(|row| memories.iter().map(move |m| (row, m)))
            {
                for (place, library) in (1..).zip(libraries) {
                    text += &format!("{row},a,{memory},1024,2048,50,1,{library},{place}00,1.0\n");
                }
            }
            Record::parse(&text).expect("a record")
        };
        let sizes = ["d1s8-1K", "d1s8-16K", "d1s8-1M", "halo-128"];
        let both = ["user", "alloc"];
        let calls = ["bcast-8B-x2", "bcast-1K-x2", "bcast-64K-x2", "barrier-x8"];
        let puts = ["put-d1s8-64K", "put-d1s8-1M", "put-d1s8-4M", "lock-x8"];
        let own = ["typepack", "mpich"];
        let cases = [
            ("messages", table("pingpong", &sizes, &both, &own), "1 double of every 8"),
            (
                "collectives",
                table("collectives", &calls, &["user"], &own),
                "8 ranks, over the best of",
            ),
            ("one-sided", table("one-sided", &puts, &both, &own), "put of 1 double of every 8"),
            (
                "interpose",
                table("interpose", &sizes, &["user"], &["mpich+typepack", "mpich"]),
                "mpich behind typepack over mpich alone",
            ),
        ];
        for (name, record, words) in cases {
            let list = pictures(&record).expect("pictures");
            let names: Vec<String> = list.iter().map(|picture| picture.name.clone()).collect();
            assert_eq!(names, [format!("bandwidth-{name}.svg"), format!("speedup-{name}.svg")]);
            assert!(list[1].text.contains(words), "{words} is missing: {}", list[1].text);
            assert!(
                list[0].text.contains(" KiB") && list[0].text.contains(" MiB")
                    || name == "collectives"
            );
        }
    }

    #[test]
    fn a_record_without_peers_is_drawn() {
        let text: String = "row,class,size,bytes,part,competitor,ns,spread\n\
                            a,plain,128,128,pack,typepack,2,1\n"
            .to_owned();
        let list = pictures(&Record::parse(&text).expect("a record")).expect("pictures");
        let names: Vec<&str> = list.iter().map(|picture| picture.name.as_str()).collect();
        // There is no picture: one size is not enough for a line of bandwidths, and without peers and hand
        // loops there is no ratio.
        assert!(names.is_empty(), "{names:?}");
    }
}
