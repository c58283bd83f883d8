use std::hint::black_box;
use std::time::Instant;
use typepack_engine::*;
fn main() {
    let d = Datatype::named(Named::F64);
    let f = Datatype::named(Named::F32);
    let b = Datatype::named(Named::BYTE);
    let s13 = Datatype::structured(
        &[1, 1, 1],
        &[0, 4, 8],
        &[Datatype::named(Named::CHAR), Datatype::named(Named::INT), d.clone()],
    )
    .unwrap();
    let part = Datatype::structured(
        &[3, 1, 3],
        &[0, 24, 32],
        &[d.clone(), Datatype::named(Named::INT), d.clone()],
    )
    .unwrap();
    let blk = |n: i64, bl: i64, st: i64, t: &Datatype| Datatype::vector(n, bl, st, t).unwrap();
    for kb in [1i64, 16, 256, 2048] {
        let total = kb * 1024;
        let mut cases: Vec<(String, Datatype, u64)> = vec![
            ("struct13".into(), s13.clone(), (total / 13) as u64),
            ("particle".into(), part.clone(), (total / 52) as u64),
        ];
        for (bl, st) in [(1, 2), (1, 8), (1, 512), (3, 7), (4, 8), (8, 16), (5, 50), (64, 128)] {
            cases.push((format!("d{bl}s{st}"), blk(total / (8 * bl), bl, st, &d), 1));
        }
        for (bl, st) in [(1, 2), (1, 3), (1, 16)] {
            cases.push((format!("f{bl}s{st}"), blk(total / (4 * bl), bl, st, &f), 1));
        }
        for (bl, st) in [(1, 2), (1, 3)] {
            cases.push((format!("b{bl}s{st}"), blk(total / (bl), bl, st, &b), 1));
        }
        let side = ((total / 8) as f64).sqrt() as i64;
        let col = Datatype::resized(0, 8, &blk(side, 1, side, &d)).unwrap();
        cases.push((format!("transpose{side}"), col, side as u64));
        let fside = ((total / 4) as f64).sqrt() as i64;
        let col = Datatype::resized(0, 4, &blk(fside, 1, fside, &f)).unwrap();
        cases.push((format!("ftranspose{fside}"), col, fside as u64));
        let rows = total / 512;
        let col = Datatype::resized(0, 8, &blk(rows, 1, 512, &d)).unwrap();
        cases.push((format!("64col{rows}"), col, 64));
        for (name, ty, count) in cases {
            let set = Settings::default();
            let int = Settings { rung: Some(Rung::Interpreter), ..Default::default() };
            let p = ty.commit_with(&set).unwrap();
            let q = ty.commit_with(&int).unwrap();
            let bytes = p.packed_bytes(count).unwrap() as usize;
            let fp = p.footprint();
            let len =
                (fp.true_ub as i128 + (count as i128 - 1).max(0) * fp.extent as i128) as usize;
            let src: Vec<u8> = (0..len).map(|i| (i * 31 + i / 256) as u8).collect();
            let mut dst = vec![1u8; len];
            let (mut pa, mut pb) = (vec![0u8; bytes], vec![0u8; bytes]);
            pack(&p, count, &src, &mut pa).unwrap();
            pack(&q, count, &src, &mut pb).unwrap();
            assert!(pa == pb, "{name}");
            let reps = (1 << 20) / bytes + 1;
            let mut t = vec![vec![]; 5];
            for _ in 0..11 {
                let mut go = |i: usize, f: &mut dyn FnMut()| {
                    let s = Instant::now();
                    for _ in 0..reps {
                        f()
                    }
                    t[i].push(s.elapsed().as_nanos() as f64 / reps as f64);
                };
                go(0, &mut || {
                    pb.copy_from_slice(black_box(&pa));
                });
                go(1, &mut || {
                    pack(&q, count, black_box(&src), &mut pb).unwrap();
                });
                go(2, &mut || {
                    pack(&p, count, black_box(&src), &mut pb).unwrap();
                });
                go(3, &mut || {
                    unpack(&q, count, black_box(&pa), &mut dst).unwrap();
                });
                go(4, &mut || {
                    unpack(&p, count, black_box(&pa), &mut dst).unwrap();
                });
            }
            print!("{:16} {kb:5}K", name);
            for v in &mut t {
                v.sort_by(f64::total_cmp);
                print!(" {:7.1}", bytes as f64 / v[2]);
            }
            println!();
        }
    }
}
