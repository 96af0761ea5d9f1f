//! rowplane's answers to the questions of `tests/upstream`: each line of the input is a question in JSON, each line of
//! the output its answer. Upstream's own code answers the same questions on the other side.

use std::io::{BufRead, BufWriter, Write};

mod apply;
mod question;

use question::Question;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut out = BufWriter::new(std::io::stdout().lock());
    for line in std::io::stdin().lock().lines() {
        let question: Question = serde_json::from_str(&line?)?;
        serde_json::to_writer(&mut out, &question.answer())?;
        out.write_all(b"\n")?;
        out.flush()?;
    }
    Ok(())
}
