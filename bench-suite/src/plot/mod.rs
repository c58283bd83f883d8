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

/// The name that the table of DDTBench has in records.
pub const DDTBENCH: &str = "peers --set ddtbench";

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
        let mut text = String::from(
            "# cpu: some\nlayout,class,size,bytes,direction,memcpy_gb_per_s,memcpy_spread,\
             typepack_gb_per_s,typepack_spread,hand_gb_per_s,hand_spread,mpich_gb_per_s,mpich_spread\n",
        );
        for (layout, class) in [("d1s2", "plain"), ("struct", "gapped"), ("cols64", "transpose")] {
            for size in [128, 1024, 16384] {
                for direction in ["pack", "unpack"] {
                    text += &format!(
                        "{layout},{class},{size},{size},{direction},40,1,20,1,25,1,10,1\n"
                    );
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
            "# cpu: some\n# typepack-bench io\nrow,class,block,direction,calls,bytes,library,first_ns,\
             first_spread,best_ns,best_spread,turns,growth,fault\n",
        );
        for block in [8, 64] {
            for library in ["typepack", "mpich", "loop-kept"] {
                // The peer is too slow for the smaller blocks.
                let figures = match (block, library) {
                    (8, "mpich") => ",,,,0,,over 20",
                    _ => "900,1.0,700,1.0,3,0,",
                };
                let row = format!("{block}B-read-collective,fine,{block},read,collective,1000");
                text += &format!("{row},{library},{figures}\n");
            }
        }
        let list = pictures(&Record::parse(&text).expect("a record")).expect("pictures");
        let names: Vec<&str> = list.iter().map(|picture| picture.name.as_str()).collect();
        assert_eq!(names, ["io-read.svg"]);
        // Typepack and the loop have two points each, and the peer has one.
        assert_eq!(list[0].text.matches("<circle").count(), 5, "{}", list[0].text);
    }

    #[test]
    fn a_record_without_peers_is_drawn() {
        let text: String = "layout,class,size,bytes,direction,typepack_gb_per_s,typepack_spread\n\
                            a,plain,128,128,pack,2,1\n"
            .to_owned();
        let list = pictures(&Record::parse(&text).expect("a record")).expect("pictures");
        let names: Vec<&str> = list.iter().map(|picture| picture.name.as_str()).collect();
        // There is no picture: one size is not enough for a line of bandwidths, and without peers and hand
        // loops there is no ratio.
        assert!(names.is_empty(), "{names:?}");
    }
}
