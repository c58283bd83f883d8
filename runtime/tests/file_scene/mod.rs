//! What the tests of files share: the path and the opening of a file, and accesses by every kind of call.

use std::path::{Path, PathBuf};
use typepack::engine::Elements;
use typepack::io::{Access, File, Mode, Position};
use typepack::{Communicator, Plan};

/// Returns the path of a file of this job, in the folder that `FAULTS_FOLDER` names or in that for temporary files.
pub fn path(world: &Communicator, name: &str) -> PathBuf {
    let mut pid = [std::process::id()];
    world.broadcast(&mut pid, 0).expect("a number");
    let folder = std::env::var_os("FAULTS_FOLDER").map_or_else(std::env::temp_dir, PathBuf::from);
    folder.join(format!("typepack-{name}-{}", pid[0]))
}

pub fn new_file(world: &Communicator, path: &Path) -> File {
    File::open(world, path, Mode::CREATE_READ_WRITE | Mode::DELETE_ON_CLOSE).expect("a file")
}

/// The arguments of a call under test.
pub struct Scene<'a> {
    pub world: &'a Communicator,
    pub file: &'a File,
    /// The path of another file, which does not exist. For calls on streams, this is the path of the stream.
    pub other: &'a Path,
    pub byte: &'a Plan,
}

/// Makes an access by a nonblocking or split call.
pub fn started(
    scene: &Scene<'_>,
    access: Access,
    split: bool,
    data: &mut [u8],
) -> typepack::Result<u64> {
    let part = Elements { origin: data.as_mut_ptr(), plan: scene.byte, count: data.len() as u64 };
    // SAFETY: `data` outlives the access, which is over when `finish` or `end` has returned, and nobody else uses it.
    unsafe {
        if split {
            scene.file.begin_raw(access, &part)?;
            return Ok(scene.file.end(access, data.as_ptr() as usize)?.bytes);
        }
        let started = scene.file.start_raw(access, &part)?;
        Ok(scene.world.messages().finish(started.operation)?.bytes)
    }
}

pub fn at(write: bool, collective: bool) -> Access {
    Access { write, position: Position::At(0), collective }
}

pub fn shared(write: bool, collective: bool) -> Access {
    Access { write, position: Position::Shared, collective }
}
