//! Prints one compiled kernel, for `typepack explain --clif --asm`.
//!
//! The code generator returns a report on the kernel (`typepack_jit::report`), and [`text`] formats it. If
//! nothing would be compiled for the type, `text` says what runs instead of a kernel. `text` commits the type
//! as a program would, so `TYPEPACK_KERNEL` and typepack's other environment variables have an effect.

use std::fmt::Write;

use typepack::engine::{Datatype, Direction, Strategy};

use super::options::{Options, Way};

/// Checks that the options about kernels may be combined with the other options.
pub fn check(options: &Options) -> Result<(), String> {
    if options.clif || options.asm {
        return match &options.svg {
            Some(_) => Err("--svg: cannot be combined with --clif or --asm".to_owned()),
            None => Ok(()),
        };
    }
    match (options.nest, options.direction) {
        (Some(_), _) => Err("--nest: needs --clif or --asm".to_owned()),
        (_, Some(_)) => Err("--direction: needs --clif or --asm".to_owned()),
        (None, None) => Ok(()),
    }
}

/// Returns the report on the kernel of one nest of `ty` (a nest is a part of the type's program that one
/// kernel can execute). If there is no kernel, returns a line that says what runs instead.
pub fn text(options: &Options, ty: &Datatype) -> Result<String, String> {
    let plan = typepack::commit(ty).map_err(|error| error.to_string())?;
    if plan.element_bytes() == 0 {
        return Ok("no kernel: there is nothing to move\n".to_owned());
    }
    if plan.is_contiguous() {
        return Ok("no kernel: one memcpy moves any count of elements\n".to_owned());
    }
    let (number, nests) = (options.nest.unwrap_or(0), plan.nests().len());
    let Some((nest, strategy, executors)) = plan.executors().nth(number) else {
        return match (options.nest, nests) {
            (_, 0) => {
                Ok("no kernel: the program has no nest; runs are copied one by one\n".to_owned())
            }
            _ => Err(format!("--nest: {number} is too large; it must be at most {}", nests - 1)),
        };
    };
    let way = options.direction.unwrap_or(Way::Pack);
    let (direction, runs) = match way {
        Way::Pack => (Direction::Pack, &executors[0]),
        Way::Unpack => (Direction::Unpack, &executors[1]),
    };
    let shape = nest.shape(direction);
    let name = shape.to_string();
    // If the kernel handles only calls up to a size limit, its name is followed by the limit and by the
    // executor that handles larger calls, for example "up to 113 B, leaf window".
    let beyond = runs.strip_prefix(&name).filter(|rest| rest.is_empty() || rest.starts_with(' '));
    let Some(beyond) = beyond else {
        let why = match strategy {
            Strategy::Rows => "one memcpy per row".to_owned(),
            _ => match typepack::jit().disabled() {
                Some(reason) => format!("{runs} ({reason})"),
                None => runs.clone(),
            },
        };
        let force = "TYPEPACK_KERNEL=kernel forces a kernel";
        return Ok(format!(
            "no kernel: \"{name}\" (nest {number} of {nests}) runs as {why}; {force}\n"
        ));
    };
    let host = typepack_jit::Target::Host;
    let report = typepack_jit::report(nest, direction, host).map_err(|error| error.to_string())?;
    let mut out = format!(
        "kernel {}\n  nest {number} of {nests}, {} bytes of code, compiled in {:.0} us\n",
        report.name,
        report.code_bytes,
        report.compile.as_secs_f64() * 1e6,
    );
    // Writing to a string cannot fail, so the results of `writeln!` are ignored below.
    if !beyond.is_empty() {
        let (limit, other) = beyond.split_once(", ").unwrap_or((beyond, "another executor"));
        let _ = writeln!(out, "  takes calls{limit}; longer calls go to {other}");
    }
    let _ = writeln!(out, "\nParameter block (8-byte words, for one element)");
    for (i, (what, value)) in report.parameters.iter().enumerate() {
        let value = match what.ends_with("address of the table") {
            true => format!("{value:#x}"),
            false => (*value as i64).to_string(),
        };
        let _ = writeln!(out, "  {i:2}  {what:38} {value:>18}");
    }
    for (wanted, title, body) in
        [(options.clif, "CLIF", &report.clif), (options.asm, "Instructions", &report.assembly)]
    {
        if wanted {
            let _ = writeln!(out, "\n{title}");
            for line in body.trim_end().lines() {
                let _ = writeln!(out, "{}", format!("  {line}").trim_end());
            }
        }
    }
    Ok(out)
}
