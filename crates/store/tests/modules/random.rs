//! Tests of `random`.

use rowplane_store::random::Random;

#[test]
fn a_seed_repeats_itself_and_the_system_does_not() {
    let draws = |random: Random| [random.uuid(), random.uuid()];
    assert_eq!(draws(Random::seeded(7)), draws(Random::seeded(7)));
    let [one, other] = draws(Random::seeded(7));
    assert!(one != other && one.get_version_num() == 4);
    assert_ne!(draws(Random::default()), draws(Random::default()));
    let forks = [Random::seeded(7), Random::seeded(7)].map(|random| (random.fork(), random));
    forks[0].1.uuid();
    assert_eq!(forks[0].0.uuid(), forks[1].0.uuid());
    assert_ne!(forks[0].0.uuid(), forks[0].0.fork().uuid());
}
