//! Particles move between ranks: a struct of the program is the element of messages and collective calls.
//!
//! `#[derive(Equivalence)]` gives the struct a datatype. The bytes between its fields are not sent. Each rank owns a part
//! of the line from 0 to the number of ranks. Particles that leave the part go to the next rank.
//!
//!     mpiexec -n 4 target/debug/examples/particles

use typepack::{Equivalence, Op};

#[derive(Clone, Copy, Debug, Default, PartialEq, Equivalence)]
struct Particle {
    id: u32,
    position: f64,
    velocity: [f32; 3],
    kind: u8,
}

fn main() -> typepack::Result<()> {
    let universe = typepack::init()?;
    let world = universe.world();
    let (rank, size) = (world.rank(), world.size());
    let (next, previous) = ((rank + 1) % size, (rank + size - 1) % size);

    let own = 0..1000u32;
    let mut particles: Vec<Particle> = own
        .map(|n| Particle {
            id: rank as u32 * 1000 + n,
            position: rank as f64 + f64::from(n) / 1000.0,
            velocity: [0.25, 0.0, 0.0],
            kind: 1,
        })
        .collect();

    for _step in 0..8 {
        for particle in &mut particles {
            particle.position += f64::from(particle.velocity[0]);
        }
        let leaves = |particle: &Particle| particle.position >= (rank + 1) as f64;
        let (mut going, staying): (Vec<_>, Vec<_>) = particles.into_iter().partition(leaves);
        if rank + 1 == size {
            going.iter_mut().for_each(|particle| particle.position -= size as f64);
        }
        // Even ranks send first. The buffer has room for all particles of all ranks.
        let mut coming = vec![Particle::default(); 1000 * size];
        let receive = |coming: &mut [Particle]| world.recv(coming, previous, 0);
        let arrived = if size == 1 {
            coming[..going.len()].copy_from_slice(&going);
            going.len()
        } else if rank % 2 == 0 {
            world.send(&going, next, 0)?;
            receive(&mut coming)?.1
        } else {
            let arrived = receive(&mut coming)?.1;
            world.send(&going, next, 0)?;
            arrived
        };
        particles = staying;
        particles.extend_from_slice(&coming[..arrived]);
    }

    // No particle is lost, and all ranks know the one that is farthest to the right.
    let mut count = [particles.len() as u64];
    world.all_reduce_in_place(&mut count, Op::Sum)?;
    let mut last = [particles.iter().copied().fold(Particle::default(), farther)];
    world.all_reduce_values(&mut last, farther)?;
    let (own, all, [last]) = (particles.len(), count[0], last);
    println!(
        "rank {rank}: {own} of {all} particles, the last one is {} at {:.3}",
        last.id, last.position
    );
    assert_eq!(count[0], 1000 * size as u64);
    Ok(())
}

fn farther(a: Particle, b: Particle) -> Particle {
    if b.position > a.position { b } else { a }
}
