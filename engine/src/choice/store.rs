//! What this process has remembered and has from earlier jobs: the best way of each key.
//!
//! A [`Choice`](super::Choice) begins with the way that is noted here, and notes its best way when it has compared all
//! its candidates. The runtime fills the store from a tune file and writes it back.

use super::form::{Key, Remembered};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The best ways by keys.
#[derive(Debug, Default)]
pub struct Store {
    lists: Mutex<Lists>,
}

#[derive(Debug, Default)]
struct Lists {
    earlier: BTreeMap<Key, u8>,
    found: BTreeMap<Key, u8>,
}

impl Store {
    fn lists(&self) -> MutexGuard<'_, Lists> {
        self.lists.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Uses what earlier jobs have remembered. Of several values about one key, the last one counts.
    pub fn know(&self, remembered: &[Remembered]) {
        self.lists().earlier.extend(remembered.iter().map(|Remembered { key, way }| (*key, *way)));
    }

    /// Notes the best way that this process has found.
    pub fn note(&self, Remembered { key, way }: Remembered) {
        self.lists().found.insert(key, way);
    }

    /// Returns the best way of a key, if it is known.
    pub fn get(&self, key: Key) -> Option<u8> {
        let lists = self.lists();
        lists.found.get(&key).or_else(|| lists.earlier.get(&key)).copied()
    }

    /// Returns what this job and earlier jobs have remembered.
    pub fn remembered(&self) -> Vec<Remembered> {
        let lists = self.lists();
        let mut all = lists.earlier.clone();
        all.extend(&lists.found);
        listed(&all)
    }

    /// Returns what earlier jobs have remembered.
    pub fn earlier(&self) -> Vec<Remembered> {
        listed(&self.lists().earlier)
    }
}

fn listed(ways: &BTreeMap<Key, u8>) -> Vec<Remembered> {
    ways.iter().map(|(key, way)| Remembered { key: *key, way: *way }).collect()
}

/// Returns the store of this process.
pub fn store() -> &'static Store {
    static STORE: Store =
        Store { lists: Mutex::new(Lists { earlier: BTreeMap::new(), found: BTreeMap::new() }) };
    &STORE
}
