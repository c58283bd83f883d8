//! Simplifies a case that fails a check, for as long as the simpler case still fails. The search is
//! greedy and deterministic, and it does not depend on how the case was generated.
//!
//! The search runs after a failed check (`check.rs`). Developers add the resulting case to
//! `regressions/`.

use crate::generate::Case;
use crate::recipe::Recipe;

/// Maximum number of candidates to try. The check runs at most once per candidate.
const MOST_STEPS: usize = 3000;

/// Returns a simple case for which `fails` returns true. The caller guarantees that `fails(case)`
/// returns true.
pub fn shrink(case: &Case, mut fails: impl FnMut(&Case) -> bool) -> Case {
    let mut best = case.clone();
    let mut steps = 0;
    'again: loop {
        for candidate in candidates(&best) {
            steps += 1;
            if steps > MOST_STEPS {
                return best;
            }
            // Skips a candidate beyond the checker's bounds: the checker would refuse the candidate,
            // and `fails` would mistake the refusal for a failure.
            if candidate.model().is_some() && fails(&candidate) {
                best = candidate;
                continue 'again;
            }
        }
        return best;
    }
}

/// Returns simpler cases, the simplest first. Each one is smaller in a well-founded order (fewer nodes,
/// fewer list items, or numbers closer to 0), so shrinking ends.
fn candidates(case: &Case) -> Vec<Case> {
    let mut list: Vec<Case> = smaller(&case.recipe)
        .into_iter()
        .map(|recipe| Case { recipe, count: case.count })
        .collect();
    for count in [1, case.count / 2, case.count.saturating_sub(1)] {
        if count < case.count {
            list.push(Case { recipe: case.recipe.clone(), count });
        }
    }
    list
}

fn smaller(recipe: &Recipe) -> Vec<Recipe> {
    let children = recipe.children();
    let mut list: Vec<Recipe> = children.iter().map(|&c| c.clone()).collect();
    list.extend(simpler_arguments(recipe));
    for (i, child) in children.iter().enumerate() {
        for simpler in smaller(child) {
            let mut replaced: Vec<Recipe> = children.iter().map(|&c| c.clone()).collect();
            replaced[i] = simpler;
            list.push(recipe.with_children(replaced));
        }
    }
    list
}

/// Returns simpler values for an argument: numbers closer to 0 than `value`.
fn numbers(value: i64) -> Vec<i64> {
    let mut list = vec![0, value.signum(), value / 2, value - value.signum()];
    list.retain(|&n| n.unsigned_abs() < value.unsigned_abs());
    list.dedup();
    list
}

/// Returns shorter lists that are not empty: the two halves, and then lists from which one of the first
/// 16 items is removed.
fn lists<T: Clone>(items: &[T]) -> Vec<Vec<T>> {
    let half = items.len() / 2;
    let mut list = Vec::new();
    if half > 0 {
        list.push(items[..half].to_vec());
        list.push(items[half..].to_vec());
    }
    for i in 0..items.len().min(16) {
        let mut rest = items.to_vec();
        rest.remove(i);
        if !rest.is_empty() {
            list.push(rest);
        }
    }
    list
}

fn simpler_arguments(recipe: &Recipe) -> Vec<Recipe> {
    let mut list = Vec::new();
    let mut vary = |value: i64, set: &dyn Fn(&mut Recipe, i64)| {
        for number in numbers(value) {
            let mut simpler = recipe.clone();
            set(&mut simpler, number);
            list.push(simpler);
        }
    };
    match recipe {
        Recipe::Named(_) | Recipe::Dup { .. } | Recipe::F90(_) | Recipe::ValueIndex { .. } => {}
        Recipe::Contiguous { count, .. } => vary(*count, &|r, n| {
            if let Recipe::Contiguous { count, .. } = r {
                *count = n;
            }
        }),
        Recipe::Vector { count, blocklength, stride, .. } => {
            for (which, value) in [*count, *blocklength, *stride].into_iter().enumerate() {
                vary(value, &|r, n| {
                    if let Recipe::Vector { count, blocklength, stride, .. } = r {
                        *[count, blocklength, stride][which] = n;
                    }
                });
            }
        }
        Recipe::Indexed { blocks, .. } => {
            for (i, block) in blocks.iter().enumerate().take(16) {
                vary(block.blocklength, &|r, n| {
                    if let Recipe::Indexed { blocks, .. } = r {
                        blocks[i].blocklength = n;
                    }
                });
                vary(block.displacement, &|r, n| {
                    if let Recipe::Indexed { blocks, .. } = r {
                        blocks[i].displacement = n;
                    }
                });
            }
        }
        Recipe::IndexedBlock { blocklength, displacements, .. } => {
            vary(*blocklength, &|r, n| {
                if let Recipe::IndexedBlock { blocklength, .. } = r {
                    *blocklength = n;
                }
            });
            for (i, displacement) in displacements.iter().enumerate().take(16) {
                vary(*displacement, &|r, n| {
                    if let Recipe::IndexedBlock { displacements, .. } = r {
                        displacements[i] = n;
                    }
                });
            }
        }
        Recipe::Struct { members, .. } => {
            for (i, (block, _)) in members.iter().enumerate() {
                vary(block.blocklength, &|r, n| {
                    if let Recipe::Struct { members, .. } = r {
                        members[i].0.blocklength = n;
                    }
                });
                vary(block.displacement, &|r, n| {
                    if let Recipe::Struct { members, .. } = r {
                        members[i].0.displacement = n;
                    }
                });
            }
        }
        Recipe::Subarray { .. } => {}
        Recipe::Darray { rank, dimensions, .. } => {
            vary(i64::from(*rank), &|r, n| {
                if let Recipe::Darray { rank, .. } = r {
                    *rank = n as i32;
                }
            });
            for (i, spread) in dimensions.iter().enumerate() {
                vary(spread.size, &|r, n| {
                    if let Recipe::Darray { dimensions, .. } = r {
                        dimensions[i].size = n;
                    }
                });
                vary(i64::from(spread.argument), &|r, n| {
                    if let Recipe::Darray { dimensions, .. } = r {
                        dimensions[i].argument = n as i32;
                    }
                });
            }
        }
        Recipe::Resized { lb, extent, .. } => {
            for (which, value) in [*lb, *extent].into_iter().enumerate() {
                vary(value, &|r, n| {
                    if let Recipe::Resized { lb, extent, .. } = r {
                        *[lb, extent][which] = n;
                    }
                });
            }
        }
    }
    list.extend(shorter_lists(recipe));
    list
}

fn shorter_lists(recipe: &Recipe) -> Vec<Recipe> {
    match recipe {
        Recipe::Indexed { bytes, blocks, old } => lists(blocks)
            .into_iter()
            .map(|blocks| Recipe::Indexed { bytes: *bytes, blocks, old: old.clone() })
            .collect(),
        Recipe::IndexedBlock { bytes, blocklength, displacements, old } => lists(displacements)
            .into_iter()
            .map(|displacements| Recipe::IndexedBlock {
                bytes: *bytes,
                blocklength: *blocklength,
                displacements,
                old: old.clone(),
            })
            .collect(),
        Recipe::Struct { call, members } => lists(members)
            .into_iter()
            .map(|members| Recipe::Struct { call: *call, members })
            .collect(),
        Recipe::Subarray { order, dimensions, old } => lists(dimensions)
            .into_iter()
            .map(|dimensions| Recipe::Subarray { order: *order, dimensions, old: old.clone() })
            .collect(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::shrink;
    use crate::Case;

    #[test]
    fn only_what_fails_is_left() {
        let case: Case =
            "17 * struct([2@8 contiguous(3, int), 4@100 vector(9, 2, -5, dup(double))])"
                .parse()
                .expect("a case");
        // In this test, a case fails if it has a negative stride over at least two blocks.
        let fails = |case: &Case| {
            let text = case.to_string();
            text.contains("vector(")
                && text.contains(", -")
                && !text.contains("vector(1,")
                && !text.contains("vector(0,")
        };
        assert_eq!(shrink(&case, fails).to_string(), "0 * vector(2, 0, -1, double)");
    }
}
