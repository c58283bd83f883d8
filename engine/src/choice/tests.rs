//! Tests the chooser with given costs: noise, drift, ties, a way that fails, and the budget.

use super::*;

/// Random numbers below a bound (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

/// Does `jobs` jobs. A job in way `w` costs `costs[w]`, changed by `noise`. Returns how often each way was
/// used.
fn work(
    chooser: &mut Chooser,
    jobs: usize,
    costs: &[u64],
    mut noise: impl FnMut(u64) -> u64,
) -> Vec<usize> {
    let mut used = vec![0; costs.len()];
    for _ in 0..jobs {
        let Pick { way, timed } = chooser.pick();
        used[usize::from(way)] += 1;
        let cost = noise(costs[usize::from(way)]);
        if timed {
            chooser.report(way, cost);
        }
    }
    used
}

#[test]
fn the_best_way_is_found() {
    for best in 0..4 {
        let mut costs = [100, 130, 110, 150];
        costs[best] = 60;
        let mut chooser = Chooser::new(4, 0);
        work(&mut chooser, 500, &costs, |cost| cost);
        assert_eq!(usize::from(chooser.best()), best);
        assert!(chooser.is_settled());
        let used = work(&mut chooser, 1000, &costs, |cost| cost);
        assert!(used[best] > 950, "{used:?}");
    }
}

#[test]
fn looking_stays_within_its_budget() {
    // A way that is a hundred times slower is tried only when enough time has been spent.
    let mut random = Random(7);
    for costs in [[100, 10_000, 120], [100, 101, 5000], [1000, 1500, 1900]] {
        let mut chooser = Chooser::new(3, 0);
        for jobs in [10, 50, 100, 1000, 10_000] {
            work(&mut chooser, jobs, &costs, |cost| cost + random.below(cost / 10 + 1));
            let (lost, spent) = chooser.lost_and_spent();
            // One look may cost more than expected. Then no other look begins until the budget has paid for
            // it.
            let most = costs.iter().max().unwrap() * 11 / 10;
            assert!(lost <= spent / BUDGET + most, "{costs:?}: {lost} of {spent}");
        }
        assert_eq!(chooser.best(), 0);
    }
}

#[test]
fn second_looks_stay_within_their_own_budget() {
    // The first looks end within 500 jobs. From then on, all looks are second looks.
    let mut random = Random(11);
    for costs in [[100, 300, 180], [100, 150, 199], [1000, 20_000, 1050]] {
        let mut chooser = Chooser::new(3, 0);
        let mut noise = |cost: u64| cost + random.below(cost / 10 + 1);
        work(&mut chooser, 5000, &costs, &mut noise);
        let (first, before) = chooser.lost_and_spent();
        for _ in 0..10 {
            work(&mut chooser, 5000, &costs, &mut noise);
            let (lost, spent) = chooser.lost_and_spent();
            let most = costs.iter().max().unwrap() * 11 / 10;
            assert!(lost - first <= (spent - before) / BUDGET_AGAIN + before / BUDGET_AGAIN + most);
        }
        assert_eq!(chooser.best(), 0);
    }
}

/// A second look at a way that was much slower ends after one job. The way is looked at again later, and it wins once
/// it has become fast.
#[test]
fn a_second_look_at_a_hopeless_way_is_short() {
    let mut chooser = Chooser::new(2, 0);
    let used = work(&mut chooser, 2000, &[100, 500], |cost| cost);
    assert!(used[1] < 10, "{used:?}");
    // The comparison stands also while a second look has not begun yet.
    for _ in 0..1000 {
        work(&mut chooser, 1, &[100, 500], |cost| cost);
        assert!(chooser.is_settled() && chooser.median(1) == Some(500));
    }
    work(&mut chooser, 4000, &[100, 50], |cost| cost);
    assert_eq!(chooser.best(), 1);
}

/// All costs of a way are higher than those of the present way, but less than twice as high. Three of them are enough,
/// after the first job, whose cost is not recorded.
#[test]
fn a_look_at_a_slower_way_is_short() {
    let mut chooser = Chooser::new(2, 0);
    let used = work(&mut chooser, 63, &[100, 120], |cost| cost);
    assert_eq!(used[1], 4);
    assert!(chooser.is_settled());
}

#[test]
fn outliers_do_not_decide() {
    let mut random = Random(99);
    let mut chooser = Chooser::new(2, 0);
    // One job in ten takes fifty times as long, in both ways.
    let noise = |cost: u64| if random.below(10) == 0 { cost * 50 } else { cost };
    work(&mut chooser, 5000, &[100, 70], noise);
    assert_eq!(chooser.best(), 1);
}

/// While memory is touched for the first time, everything takes much longer. A way that was looked at in that
/// time gets another look.
#[test]
fn a_bad_beginning_is_repaired() {
    for slow in [10, 20, 40] {
        let mut chooser = Chooser::new(2, 0);
        for job in 0..1000 {
            let factor = if job < slow { 15 } else { 1 };
            work(&mut chooser, 1, &[100, 80], |cost| cost * factor);
        }
        assert_eq!(chooser.best(), 1, "{slow} slow jobs");
    }
}

#[test]
fn ties_do_not_flap() {
    let mut random = Random(3);
    let mut chooser = Chooser::new(3, 1);
    let mut changes = 0;
    let mut last = chooser.best();
    for _ in 0..10_000 {
        work(&mut chooser, 1, &[100, 100, 100], |cost| cost + random.below(4));
        changes += usize::from(chooser.best() != last);
        last = chooser.best();
    }
    assert_eq!(changes, 0);
}

#[test]
fn a_machine_that_changes_is_noticed() {
    let mut chooser = Chooser::new(3, 0);
    work(&mut chooser, 1000, &[100, 200, 300], |cost| cost);
    assert_eq!(chooser.best(), 0);
    // The present way becomes slower.
    work(&mut chooser, 2000, &[400, 200, 300], |cost| cost);
    assert_eq!(chooser.best(), 1);
    // Another way becomes faster.
    work(&mut chooser, 5000, &[400, 200, 50], |cost| cost);
    assert_eq!(chooser.best(), 2);
}

#[test]
fn a_way_that_fails_is_not_picked_again() {
    let mut chooser = Chooser::new(3, 2);
    chooser.fail(2);
    let used = work(&mut chooser, 3000, &[100, 90, 1], |cost| cost);
    assert_eq!(used[2], 0);
    assert_eq!(chooser.best(), 1);
    chooser.fail(1);
    assert_eq!(chooser.best(), 0);
    // The last way stays, although it fails.
    chooser.fail(0);
    assert_eq!(chooser.pick().way, 0);
}

#[test]
fn one_way_needs_no_time() {
    let mut chooser = Chooser::new(1, 5);
    for _ in 0..100 {
        assert_eq!(chooser.pick(), Pick { way: 0, timed: false });
    }
    // Reports for ways that do not exist are ignored.
    chooser.report(1, 5);
    chooser.fail(9);
    assert_eq!(Chooser::new(0, 0).ways(), 1);
    assert_eq!(Chooser::new(99, 98).ways(), WAYS);
}

#[test]
fn huge_costs_do_not_overflow() {
    let mut chooser = Chooser::new(2, 0);
    work(&mut chooser, 1000, &[u64::MAX, u64::MAX / 2], |cost| cost);
    work(&mut chooser, 1000, &[0, 0], |cost| cost);
}

/// A job of the present way that has waited for seconds pays for no more looks than other jobs, and a job of a look
/// that has waited for seconds does not end the looks.
#[test]
fn an_outlier_counts_little_in_the_sums() {
    const WAIT: u64 = 10_000_000_000;
    let mut chooser = Chooser::new(2, 0);
    chooser.report(0, WAIT);
    for _ in 0..20 {
        chooser.report(0, 100);
    }
    let before = chooser.lost_and_spent();
    chooser.report(0, WAIT);
    chooser.charge(0, WAIT);
    let (lost, spent) = chooser.lost_and_spent();
    assert_eq!((lost, spent), (before.0, before.1 + 2 * OUTLIER * 100));
    chooser.report(1, WAIT);
    chooser.report(1, WAIT);
    let (lost, _) = chooser.lost_and_spent();
    assert_eq!(lost, (FIRST_OUTLIER - 1) * 100);

    let mut chooser = Chooser::new(2, 0);
    let mut jobs = 0;
    work(&mut chooser, 5000, &[100, 90], |cost| {
        jobs += 1;
        if jobs == 1 || jobs % 50 == 0 { WAIT } else { cost }
    });
    assert_eq!(chooser.best(), 1);
}

/// The rules for second looks and timed jobs hold however many jobs there were.
#[test]
fn the_rules_hold_after_very_many_jobs() {
    let mut chooser = Chooser::new(3, 0);
    work(&mut chooser, 5000, &[100, 120, 130], |cost| cost);
    let many = u64::from(u32::MAX);
    (chooser.jobs, chooser.again) = (many - 2000, many - 1900);
    let used = work(&mut chooser, 8000, &[100, 120, 130], |cost| cost);
    assert!(used[0] > 7900 && used[1] > 0, "{used:?}");
    work(&mut chooser, 8000, &[100, 50, 130], |cost| cost);
    assert_eq!(chooser.best(), 1);
}

/// Some jobs go another way than the present one before the present way has a cost: all ranks of a communicator change
/// from one way to another at the same call, which is announced some calls before. Such jobs must not count as a look.
#[test]
fn a_way_is_compared_only_with_known_costs() {
    let mut chooser = Chooser::new(3, 2);
    for _ in 0..64 {
        chooser.report(0, 50);
    }
    assert!(!chooser.is_settled() && chooser.median(0).is_none());
    work(&mut chooser, 500, &[50, 120, 100], |cost| cost);
    assert_eq!(chooser.best(), 0);
}
