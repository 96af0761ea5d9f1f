//! One table of everything measured, with the ratios that matter.

use std::time::Duration;

use super::load::Measured;

#[derive(Default)]
pub struct Report {
    rows: Vec<(&'static str, Measured)>,
}

impl Report {
    pub fn add(&mut self, name: &'static str, measured: Vec<Measured>) {
        for row in &measured {
            eprintln!("{name}, {} writers: {:.0} writes/s", row.writers, row.per_second);
        }
        self.rows.extend(measured.into_iter().map(|row| (name, row)));
    }

    pub fn print(&self) {
        println!("| | writers | writes/s | p50 ms | p99 ms | max ms | x etcd | x bare |");
        println!("|---|---|---|---|---|---|---|---|");
        for (name, row) in &self.rows {
            let ratio = |other: Option<f64>| {
                other.map_or(String::from("-"), |other| format!("{:.2}", row.per_second / other))
            };
            println!(
                "| {name} | {} | {:.0} | {} | {} | {} | {} | {} |",
                row.writers,
                row.per_second,
                milliseconds(row.p50),
                milliseconds(row.p99),
                milliseconds(row.max),
                ratio(self.per_second("etcd", row.writers)),
                ratio(self.per_second(&format!("{name}, bare"), row.writers)),
            );
        }
    }

    fn per_second(&self, name: &str, writers: usize) -> Option<f64> {
        let row = self.rows.iter().find(|(found, row)| *found == name && row.writers == writers)?;
        Some(row.1.per_second)
    }
}

fn milliseconds(time: Duration) -> String {
    format!("{:.2}", time.as_secs_f64() * 1000.0)
}
