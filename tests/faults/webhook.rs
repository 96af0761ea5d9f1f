//! The webhook that converts the load's custom objects. While everything else fails, it is gone, hangs, or answers what is
//! no answer; what it does to objects that are converted all the same has to fit together with all that clients were told.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::support::conversion_hook::Hook;

const REST: std::ops::Range<u64> = 100..2000;

pub struct Webhook {
    /// `clientConfig` of the definition.
    pub config: Value,
    stop: Arc<AtomicBool>,
    troubled: JoinHandle<(Hook, usize)>,
}

impl Webhook {
    /// `longest` is that of a fault in milliseconds; 0 for none.
    pub async fn start(seed: u64, longest: u64) -> Self {
        let hook = Hook::start().await;
        let (config, stop) = (hook.client_config(), Arc::new(AtomicBool::new(longest == 0)));
        let random = StdRng::seed_from_u64(seed.wrapping_add(9000));
        let troubled = tokio::spawn(trouble(hook, random, longest, stop.clone()));
        Self { config, stop, troubled }
    }

    /// Makes the webhook honest. Returns it, for it has to go on, with the number of faults.
    pub async fn heal(self) -> (Hook, usize) {
        self.stop.store(true, Ordering::Relaxed);
        self.troubled.await.expect("the webhook's troubles")
    }
}

async fn trouble(mut hook: Hook, mut random: StdRng, longest: u64, stop: Arc<AtomicBool>) -> (Hook, usize) {
    let mut faults = 0;
    while !stop.load(Ordering::Relaxed) {
        let lasts = Duration::from_millis(random.random_range(0..longest));
        match random.random_range(0..6) {
            0 => {
                hook.stop().await;
                tokio::time::sleep(lasts).await;
                hook.listen().await;
            }
            1 => {
                hook.hold();
                tokio::time::sleep(lasts).await;
                hook.release();
            }
            kind => {
                misbehave(&hook, kind);
                tokio::time::sleep(lasts).await;
                hook.be_honest();
            }
        }
        faults += 1;
        // What was asked is not looked at, and would fill the memory of long runs.
        drop(hook.seen());
        tokio::time::sleep(Duration::from_millis(random.random_range(REST))).await;
    }
    (hook, faults)
}

fn misbehave(hook: &Hook, kind: u32) {
    match kind {
        2 => hook.answer(500, "out of order"),
        3 => hook.answer(200, "{\"kind\":"),
        // Another object, and one too few: neither may ever be stored or shown.
        4 => hook.lie(|_, mut answer| {
            for object in answer["response"]["convertedObjects"].as_array_mut().expect("objects") {
                object["metadata"]["name"] = "another".into();
            }
            answer
        }),
        _ => hook.lie(|_, mut answer| {
            answer["response"]["convertedObjects"] = json!([]);
            answer
        }),
    }
}
