//! Unified diffs of texts.

/// Lines of context around changes.
const CONTEXT: usize = 3;

/// A line of one of the texts, or of both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Line<'a> {
    Both(&'a str),
    Old(&'a str),
    New(&'a str),
}

/// The unified diff of two texts under two names; empty if they are equal.
pub fn unified(old: &str, new: &str, (old_name, new_name): (&str, &str)) -> String {
    let lines = lines(&old.lines().collect::<Vec<_>>(), &new.lines().collect::<Vec<_>>());
    let is_change = |line: &Line<'_>| !matches!(line, Line::Both(_));
    if !lines.iter().any(is_change) {
        return String::new();
    }
    let mut text = format!("--- {old_name}\n+++ {new_name}\n");
    let (mut at, mut old_line, mut new_line) = (0, 1, 1);
    while let Some(first) = lines[at..].iter().position(is_change).map(|offset| at + offset) {
        let start = first.saturating_sub(CONTEXT).max(at);
        (old_line, new_line) = (old_line + start - at, new_line + start - at);
        let end = end_of_hunk(&lines, first);
        let hunk = &lines[start..end];
        let of_old = hunk.iter().filter(|line| !matches!(line, Line::New(_))).count();
        let of_new = hunk.iter().filter(|line| !matches!(line, Line::Old(_))).count();
        let range =
            |line: usize, count: usize| format!("{},{count}", if count == 0 { line - 1 } else { line });
        text.push_str(&format!("@@ -{} +{} @@\n", range(old_line, of_old), range(new_line, of_new)));
        for line in hunk {
            let (mark, line) = match line {
                Line::Both(line) => (' ', line),
                Line::Old(line) => ('-', line),
                Line::New(line) => ('+', line),
            };
            text.push(mark);
            text.push_str(line);
            text.push('\n');
        }
        (old_line, new_line, at) = (old_line + of_old, new_line + of_new, end);
    }
    text
}

/// The end of the hunk that begins with a change: where twice the context follows without another one.
fn end_of_hunk(lines: &[Line<'_>], first: usize) -> usize {
    let (mut end, mut same) = (first + 1, 0);
    for (index, line) in lines.iter().enumerate().skip(first) {
        match line {
            Line::Both(_) => same += 1,
            _ => (end, same) = (index + 1, 0),
        }
        if same > 2 * CONTEXT {
            break;
        }
    }
    (end + CONTEXT).min(lines.len())
}

/// Both texts as one sequence, with as many common lines as there can be.
fn lines<'a>(old: &[&'a str], new: &[&'a str]) -> Vec<Line<'a>> {
    let before = old.iter().zip(new).take_while(|(old, new)| old == new).count();
    let (old_rest, new_rest) = (&old[before..], &new[before..]);
    let after = old_rest.iter().rev().zip(new_rest.iter().rev()).take_while(|(old, new)| old == new).count();
    let middle = common(&old_rest[..old_rest.len() - after], &new_rest[..new_rest.len() - after]);
    let (head, tail) = (&old[..before], &old[old.len() - after..]);
    let both = |lines: &[&'a str]| lines.iter().map(|line| Line::Both(line)).collect::<Vec<_>>();
    [both(head), middle, both(tail)].concat()
}

/// The longest common subsequence. Texts that differ in too many lines are shown one after the other.
fn common<'a>(old: &[&'a str], new: &[&'a str]) -> Vec<Line<'a>> {
    const MOST_CELLS: usize = 16 << 20;
    let width = new.len() + 1;
    if (old.len() + 1) * width > MOST_CELLS {
        return old
            .iter()
            .map(|line| Line::Old(line))
            .chain(new.iter().map(|line| Line::New(line)))
            .collect();
    }
    // The lengths of the common subsequences of all pairs of tails.
    let mut lengths = vec![0_u32; (old.len() + 1) * width];
    for i in (0..old.len()).rev() {
        for j in (0..new.len()).rev() {
            lengths[i * width + j] = match old[i] == new[j] {
                true => lengths[(i + 1) * width + j + 1] + 1,
                false => lengths[(i + 1) * width + j].max(lengths[i * width + j + 1]),
            };
        }
    }
    let (mut i, mut j, mut lines) = (0, 0, Vec::new());
    while i < old.len() || j < new.len() {
        let (is_old, is_new) = (i < old.len(), j < new.len());
        if is_old && is_new && old[i] == new[j] {
            lines.push(Line::Both(old[i]));
            (i, j) = (i + 1, j + 1);
        } else if is_old && (!is_new || lengths[(i + 1) * width + j] >= lengths[i * width + j + 1]) {
            lines.push(Line::Old(old[i]));
            i += 1;
        } else {
            lines.push(Line::New(new[j]));
            j += 1;
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_diff_writes_it() {
        let old: String = (1..=20).map(|n| format!("{n}\n")).collect();
        let new = old.replace("\n5\n", "\nfive\nmore\n").replace("\n18\n", "\n");
        let expected = "--- a\n+++ b\n@@ -2,7 +2,8 @@\n 2\n 3\n 4\n-5\n+five\n+more\n 6\n 7\n 8\n\
            @@ -15,6 +16,5 @@\n 15\n 16\n 17\n-18\n 19\n 20\n";
        assert_eq!(unified(&old, &new, ("a", "b")), expected);
        assert_eq!(unified(&old, &old, ("a", "b")), "");
        assert_eq!(unified("", "x\n", ("a", "b")), "--- a\n+++ b\n@@ -0,0 +1,1 @@\n+x\n");
    }
}
