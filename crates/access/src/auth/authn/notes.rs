//! Warnings and annotations about a credential.

/// Warnings for the client, and annotations for the audit log. Most requests have none.
#[derive(Debug, Default)]
pub struct Notes(Option<Box<Texts>>);

#[derive(Debug, Default)]
struct Texts {
    warnings: Vec<&'static str>,
    annotations: Vec<(&'static str, String)>,
}

impl Notes {
    pub fn warn(&mut self, text: &'static str) {
        self.0.get_or_insert_default().warnings.push(text);
    }

    pub fn annotate(&mut self, key: &'static str, value: String) {
        self.0.get_or_insert_default().annotations.push((key, value));
    }

    pub fn extend(&mut self, others: Self) {
        let Some(others) = others.0 else { return };
        let own = self.0.get_or_insert_default();
        own.warnings.extend(others.warnings);
        own.annotations.extend(others.annotations);
    }

    pub fn warnings(&self) -> &[&'static str] {
        self.0.as_ref().map_or(&[], |texts| &texts.warnings)
    }

    pub fn annotations(&self) -> &[(&'static str, String)] {
        self.0.as_ref().map_or(&[], |texts| &texts.annotations)
    }
}
