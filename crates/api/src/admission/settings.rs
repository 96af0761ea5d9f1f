//! The plugins that are on, and their configuration: `--enable-admission-plugins`, `--disable-admission-plugins` and the
//! file of `--admission-control-config-file`.

use std::collections::BTreeSet;
use std::path::Path;

use super::configuration::{Configuration, TolerationSeconds};
use super::plugins::{self, Plugin};
use crate::codec::yaml;
use crate::fields;
use crate::gotext::quote;
use crate::tree::Map;

const VERSIONS: [&str; 2] = ["apiserver.config.k8s.io/v1", "apiserver.k8s.io/v1alpha1"];
const KIND: &str = "AdmissionConfiguration";
/// The plugins whose own configuration may stand in place of the file, and the member that it has then.
const OLD_FORMS: [(&str, &str); 2] =
    [("imagePolicy", "ImagePolicyWebhook"), ("podNodeSelectorPluginConfig", "PodNodeSelector")];

/// The settings of the chain. The default has the plugins that are on in a kube-apiserver without flags.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    enabled: BTreeSet<String>,
    disabled: BTreeSet<String>,
    configurations: Vec<(String, Configuration)>,
    pub tolerations: TolerationSeconds,
}

impl Settings {
    /// Switches plugins on and off. The errors are upstream's, one for each problem.
    pub fn new(enabled: &[&str], disabled: &[&str]) -> Result<Self, Vec<String>> {
        let mut problems = unknown("enable-admission-plugins", enabled);
        problems.extend(unknown("disable-admission-plugins", disabled));
        let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>();
        let (enabled, disabled) = (set(enabled), set(disabled));
        let both: Vec<&str> = enabled.intersection(&disabled).map(String::as_str).collect();
        if !both.is_empty() {
            let both = both.join(" ");
            let flags = "enable-admission-plugins and disable-admission-plugins";
            problems.push(format!("[{both}] in {flags} overlapped"));
        }
        match problems.is_empty() {
            true => Ok(Self { enabled, disabled, ..Self::default() }),
            false => Err(problems),
        }
    }

    /// Switches a plugin on that is off by default, unless it is switched off by its name.
    pub fn on_by_default(mut self, plugin: &str) -> Self {
        if !self.disabled.contains(plugin) {
            self.enabled.insert(plugin.to_owned());
        }
        self
    }

    /// Switches plugins off, whatever the flags say.
    pub fn without(mut self, plugins: &[&str]) -> Self {
        for plugin in plugins {
            self.enabled.remove(*plugin);
            self.disabled.insert((*plugin).to_owned());
        }
        self
    }

    /// Whether a plugin of this name is on.
    pub fn has(&self, plugin: &str) -> bool {
        plugins::find(plugin).is_some_and(|plugin| self.is_on(plugin))
    }

    /// Reads the file of `--admission-control-config-file`, and the files that it names.
    pub fn read_file(&mut self, path: &Path) -> Result<(), String> {
        let text = std::fs::read(path).map_err(|error| {
            let why = format!("open {}: {}", path.display(), os_words(&error));
            format!(
                "failed to read plugin config: unable to read admission control configuration from {} [{why}]",
                quote(&path.to_string_lossy())
            )
        })?;
        self.parse_file(path, &text).map_err(|why| format!("failed to read plugin config: {why}"))
    }

    fn parse_file(&mut self, path: &Path, text: &[u8]) -> Result<(), String> {
        let content = yaml::parse(text)?;
        let empty = Map::new();
        let root = content.as_object().unwrap_or(&empty);
        let (version, kind) = (fields::text(root, &["apiVersion"]), fields::text(root, &["kind"]));
        if kind == KIND && VERSIONS.contains(&version) {
            return self.take_entries(path, root);
        }
        if OLD_FORMS.iter().any(|(member, _)| root.contains_key(member)) {
            for (_, plugin) in OLD_FORMS {
                let configuration = Configuration { content: content.clone(), file: path.to_owned() };
                self.configurations.push((plugin.to_owned(), configuration));
            }
            return Ok(());
        }
        Err(match (version, kind) {
            (_, "") => "Object 'Kind' is missing".to_owned(),
            ("", _) => "Object 'apiVersion' is missing".to_owned(),
            _ => format!("no kind {} is registered for version {}", quote(kind), quote(version)),
        })
    }

    fn take_entries(&mut self, path: &Path, root: &Map) -> Result<(), String> {
        only_known(root, "", &["apiVersion", "kind", "plugins"])?;
        for (index, entry) in fields::items(root, &["plugins"]).iter().enumerate() {
            let at = format!("plugins[{index}]");
            let entry = entry.as_object().ok_or_else(|| format!("{at} is no object"))?;
            only_known(entry, &format!("{at}."), &["name", "path", "configuration"])?;
            let name = fields::text(entry, &["name"]);
            // The first entry of a name counts, and nobody looks at those of plugins that are off.
            let is_on = plugins::find(name).is_some_and(|plugin| self.is_on(plugin));
            if !is_on || self.configuration(name).is_some() {
                continue;
            }
            if let Some(configuration) = read_entry(path, entry)? {
                self.configurations.push((name.to_owned(), configuration));
            }
        }
        Ok(())
    }

    pub(super) fn is_on(&self, plugin: &Plugin) -> bool {
        self.enabled.contains(plugin.name) || (plugin.is_default && !self.disabled.contains(plugin.name))
    }

    pub(super) fn configuration(&self, plugin: &str) -> Option<&Configuration> {
        let mut configurations = self.configurations.iter();
        configurations.find(|(name, _)| name == plugin).map(|(_, configuration)| configuration)
    }
}

/// The configuration in an entry, or else in the file that it names.
fn read_entry(path: &Path, entry: &Map) -> Result<Option<Configuration>, String> {
    if let Some(content) = entry.get("configuration").filter(|content| !content.is_null()) {
        return Ok(Some(Configuration { content: content.clone(), file: path.to_owned() }));
    }
    let named = fields::text(entry, &["path"]);
    if named.is_empty() {
        return Ok(None);
    }
    let file = path.parent().unwrap_or(Path::new(".")).join(named);
    let text = std::fs::read(&file).map_err(|error| {
        let file = file.display();
        format!("Couldn't open admission plugin configuration {file}: {}", os_words(&error))
    })?;
    Ok(Some(Configuration { content: yaml::parse(&text)?, file }))
}

fn unknown(flag: &str, names: &[&str]) -> Vec<String> {
    let unknown = names.iter().filter(|name| plugins::find(name).is_none());
    unknown.map(|name| format!("{flag} plugin {} is unknown", quote(name))).collect()
}

fn only_known(object: &Map, prefix: &str, known: &[&str]) -> Result<(), String> {
    match object.keys().find(|key| !known.contains(&key.as_str())) {
        Some(key) => Err(format!("strict decoding error: unknown field \"{prefix}{key}\"")),
        None => Ok(()),
    }
}

/// Go's words for why a file cannot be opened.
fn os_words(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound => "no such file or directory".to_owned(),
        std::io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn admission_17_plugins_are_switched_by_name() {
        let problems = |on: &[&str], off: &[&str]| Settings::new(on, off).unwrap_err().join(", ");
        assert_eq!(problems(&["Nope"], &[]), "enable-admission-plugins plugin \"Nope\" is unknown");
        assert_eq!(problems(&[], &["X"]), "disable-admission-plugins plugin \"X\" is unknown");
        assert_eq!(
            problems(&["Priority", "LimitRanger"], &["LimitRanger", "Priority"]),
            "[LimitRanger Priority] in enable-admission-plugins and disable-admission-plugins overlapped"
        );
        let is_on = |settings: &Settings, name: &str| settings.is_on(plugins::find(name).expect("known"));
        let settings = Settings::new(&["AlwaysDeny"], &["Priority", "ResourceQuota"]).expect("settings");
        assert!(is_on(&settings, "AlwaysDeny") && is_on(&settings, "LimitRanger"));
        assert!(!is_on(&settings, "Priority") && !is_on(&settings, "ResourceQuota"));
        assert!(!is_on(&Settings::default(), "AlwaysDeny"));
        let restricts = |settings: Settings| settings.on_by_default("NodeRestriction").has("NodeRestriction");
        assert!(restricts(Settings::default()) && !Settings::default().has("NodeRestriction"));
        assert!(!restricts(Settings::new(&[], &["NodeRestriction"]).expect("settings")));
    }

    #[test]
    fn the_file_configures_plugins() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("admission.yaml");
        let read = |text: &str| {
            std::fs::write(&path, text).expect("written");
            let mut settings = Settings::default();
            settings.read_file(&path).map(|()| settings)
        };
        std::fs::write(dir.path().join("limits.yaml"), "a: 1").expect("written");
        let settings = read(
            "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\nplugins:\n\
             - {name: LimitRanger, path: limits.yaml}\n- {name: LimitRanger, path: other.yaml}\n\
             - {name: Priority, path: x, configuration: {b: 2}}\n- {name: AlwaysDeny, path: nowhere}\n",
        )
        .expect("settings");
        let of = |name: &str| settings.configuration(name).map(|found| found.content.to_string());
        assert_eq!(of("LimitRanger").as_deref(), Some(r#"{"a":1}"#));
        assert_eq!(of("Priority").as_deref(), Some(r#"{"b":2}"#));
        assert_eq!(of("AlwaysDeny"), None);
        let old = read("podNodeSelectorPluginConfig: {}\n").expect("settings");
        assert!(old.configuration("PodNodeSelector").is_some());
        let start = "failed to read plugin config: ";
        let head = "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\n";
        for (text, why) in [
            (format!("{head}plugin: []\n"), "strict decoding error: unknown field \"plugin\""),
            (
                format!("{head}plugins: [{{nam: x}}]\n"),
                "strict decoding error: unknown field \"plugins[0].nam\"",
            ),
            ("kind: X\napiVersion: v1\n".to_owned(), "no kind \"X\" is registered for version \"v1\""),
            ("a: 1\n".to_owned(), "Object 'Kind' is missing"),
        ] {
            assert_eq!(read(&text).unwrap_err(), format!("{start}{why}"));
        }
        let mut settings = Settings::default();
        assert_eq!(
            settings.read_file(Path::new("/nowhere/a")).unwrap_err(),
            format!(
                "{start}unable to read admission control configuration from \"/nowhere/a\" [open /nowhere/a: no such \
                 file or directory]"
            )
        );
    }
}
