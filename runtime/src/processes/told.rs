//! What the root of a call tells the other ranks: four numbers, or its error.
//!
//! Only the root asks the launcher. All ranks must then do the same, so all of them learn of the answer.

use crate::comm::Communicator;
use crate::commit::bytes;
use crate::{Error, ErrorKind, ProcessErrorKind, Result};

/// What the root tells if it has found no error.
pub(super) type Numbers = [u64; 3];

/// The kinds of errors that the other ranks get like the root, and the names of the arguments. Any other error is
/// [`ErrorKind::Other`] at the other ranks.
const KINDS: [(ErrorKind, &str); 5] = [
    (ErrorKind::Process(ProcessErrorKind::Spawn), "command"),
    (ErrorKind::Process(ProcessErrorKind::Port), "port_name"),
    (ErrorKind::Comm, "comm"),
    (ErrorKind::State, "job"),
    (ErrorKind::NoMemory, "job"),
];

/// The longest text of an error that the root passes on, in bytes.
const LONGEST: usize = 2048;

impl Communicator {
    /// Calls `ask` at the root, and returns its result at all ranks. Collective.
    pub(super) fn told(
        &self,
        root: usize,
        ask: impl FnOnce() -> Result<Numbers>,
    ) -> Result<Numbers> {
        let own = if self.rank() == root { Some(ask()) } else { None };
        let mut head = [0_u64; 5];
        let mut text = Vec::new();
        match &own {
            None => {}
            Some(Ok(numbers)) => head[2..].copy_from_slice(numbers),
            Some(Err(error)) => {
                let kind = KINDS.iter().position(|(kind, _)| *kind == error.kind());
                text = error.detail().as_bytes().to_vec();
                text.truncate(LONGEST);
                head[0] = 1 + kind.unwrap_or(KINDS.len()) as u64;
                head[1] = text.len() as u64;
            }
        }
        let length = size_of_val(&head) as u64;
        self.broadcast_elements(&mut head, bytes()?, length, root)?;
        let [failed, length, numbers @ ..] = head;
        if failed == 0 {
            return Ok(numbers);
        }
        text.resize((length as usize).min(LONGEST), 0);
        let length = text.len() as u64;
        self.broadcast_elements(&mut text, bytes()?, length, root)?;
        if let Some(Err(error)) = own {
            return Err(error);
        }
        let known = KINDS.get(failed as usize - 1).copied();
        let (kind, argument) = known.unwrap_or((ErrorKind::Other, "root"));
        Err(Error::new(kind, argument, String::from_utf8_lossy(&text)))
    }
}
