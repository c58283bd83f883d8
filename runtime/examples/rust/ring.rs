//! A token goes round the ranks.
//!
//! Run it with `mpiexec -n 4 ring [LAPS] [BYTES]`. LAPS is the number of laps; with 0 laps the
//! token goes round forever, as the kill tests require. BYTES is the size of the token, which is
//! rounded up to a multiple of 8. Every rank checks the contents of each token that it receives. In
//! a job of several ranks, it also checks the sender, the tag (the lap modulo 1000) and the length. So
//! a doubled or torn message ends the program.

use typepack::{Datatype, Named, Result, Source, Tag};

fn main() {
    if let Err(error) = run() {
        eprintln!("ring: {error}");
        std::process::exit(1);
    }
}

fn argument(position: usize, name: &str, default: u64) -> u64 {
    match std::env::args().nth(position).map(|text| text.parse()) {
        None => default,
        Some(Ok(value)) => value,
        Some(Err(_)) => {
            eprintln!("ring: {name}: not a number\nusage: ring [LAPS] [BYTES]");
            std::process::exit(2);
        }
    }
}

fn run() -> Result<()> {
    let (laps, bytes) = (argument(1, "LAPS", 1000), argument(2, "BYTES", 64).max(8));
    let universe = typepack::init()?;
    let world = universe.world();
    let (rank, size) = (world.rank(), world.size());
    let word = typepack::commit(&Datatype::named(Named::U64))?;
    let count = bytes.div_ceil(8);
    let mut token = vec![0u64; count as usize];
    let (right, left) = ((rank + 1) % size, (rank + size - 1) % size);

    let mut lap = 0u64;
    while laps == 0 || lap < laps {
        let tag = (lap % 1000) as i32;
        let expected = |i: usize| lap.wrapping_mul(31).wrapping_add(i as u64);
        if rank == 0 {
            token.iter_mut().enumerate().for_each(|(i, value)| *value = expected(i));
        }
        if size == 1 {
            let sent = token.clone();
            token.fill(0);
            world
                .sendrecv_elements(&sent, &word, count, 0, tag, &mut token, &word, count, 0, tag)?;
        } else {
            if rank == 0 {
                world.send_elements(&token, &word, count, right, tag)?;
                token.fill(0);
            }
            let status = world.recv_elements(&mut token, &word, count, Source::Any, Tag::Any)?;
            assert_eq!((status.source, status.tag, status.bytes), (left, tag, count * 8));
            if rank != 0 {
                world.send_elements(&token, &word, count, right, tag)?;
            }
        }
        for (i, value) in token.iter().enumerate() {
            assert_eq!(*value, expected(i), "lap {lap}, word {i}");
        }
        lap += 1;
    }
    world.barrier()?;
    if rank == 0 {
        println!("ring: {lap} laps of {} bytes over {size} ranks are right", count * 8);
    }
    Ok(())
}
