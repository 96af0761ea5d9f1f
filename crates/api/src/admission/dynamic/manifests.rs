//! Webhooks and policies that come from files (`pkg/admission/plugin/manifest`): those of a directory are in force together
//! or not at all.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use crate::admission::configuration::Configuration;
use crate::auth::authorizer::aggregate;
use crate::causes::Cause;
use crate::codec::{managed, yaml};
use crate::gotext::quote;
use crate::json::Node;
use crate::kinds::behavior::BuiltIn;
use crate::kinds::behavior::names::NameFormat;
use crate::kinds::behavior::rules::Rules;
use crate::kinds::built_in;
use crate::options::strictness::{conform, yaml_error};
use crate::schema::builtin;
use crate::schema::kind::Kind;
use crate::schema::names::{GroupVersion, Gvk};
use crate::schema::resource::Scope;
use crate::tree::{Map, Value, json};
use crate::{ObjectMap, fields, meta, metadata};

/// The suffix of the names of objects from files.
const END: &str = ".static.k8s.io";
const MEMBER: &str = "staticManifestsDir";
const VERSION: &str = "admissionregistration.k8s.io/v1";

/// An object of a file, with its defaults, and found valid.
pub struct Manifest {
    /// The place of its kind among those that are read.
    pub place: usize,
    pub name: String,
    pub content: ObjectMap,
}

/// The objects of a directory, by kind and name, and a hash of the files.
pub struct Manifests {
    pub list: Vec<Manifest>,
    pub hash: String,
}

/// A kind of objects that a plugin takes from files.
struct Wanted {
    kind: Kind,
    built_in: &'static BuiltIn,
}

/// Objects that have been read so far.
struct Reading {
    wanted: Vec<Wanted>,
    list: Vec<Manifest>,
    /// The file of each name, by the kind's place.
    files: HashMap<(usize, String), String>,
}

/// A document of a file.
struct Document {
    file: String,
    text: Vec<u8>,
}

/// The directory that a plugin's configuration names.
pub fn directory(configuration: Option<&Configuration>) -> Result<Option<PathBuf>, String> {
    let root = configuration.and_then(|configuration| configuration.content.as_object());
    let path = root.map_or("", |root| fields::text(root, &[MEMBER]));
    if path.is_empty() {
        return Ok(None);
    }
    let invalid = |why: &str| format!("{MEMBER}: Invalid value: {}: {why}", quote(path));
    if !path.starts_with('/') {
        return Err(invalid("must be an absolute file path"));
    }
    match std::fs::metadata(path) {
        Ok(found) if found.is_dir() => Ok(Some(PathBuf::from(path))),
        Ok(_) => Err(invalid("must be a directory")),
        Err(error) => Err(invalid(&format!("unable to read: stat {path}: {}", words(&error)))),
    }
}

impl Manifests {
    /// Reads the objects of these kinds, and none of others.
    pub fn read(directory: &Path, kinds: &[&str]) -> Result<Self, String> {
        let (documents, hash) = documents(directory)?;
        let wanted = kinds.iter().filter_map(wanted).collect();
        let mut reading = Reading { wanted, list: Vec::new(), files: HashMap::new() };
        for Document { file, text } in documents {
            reading.document(&file, &text).map_err(|why| format!("error loading {file}: {why}"))?;
        }
        reading.check_references()?;
        let mut list = reading.list;
        list.sort_by(|one, other| (one.place, &one.name).cmp(&(other.place, &other.name)));
        Ok(Self { list, hash })
    }
}

fn wanted(kind: &&str) -> Option<Wanted> {
    let gvk = Gvk { group_version: GroupVersion::parse(VERSION).ok()?, kind: (*kind).into() };
    Some(Wanted { kind: builtin::types().kind(&gvk)?, built_in: built_in::find(&gvk)? })
}

/// The documents of the files with a name of YAML or JSON, in the order of the names.
fn documents(directory: &Path) -> Result<(Vec<Document>, String), String> {
    let unreadable = |what: &str, path: &Path, error: &io::Error| {
        let shown = path.display().to_string();
        format!("failed to read {what} {}: open {shown}: {}", quote(&shown), words(error))
    };
    let entries = std::fs::read_dir(directory).and_then(|entries| entries.collect::<Result<Vec<_>, _>>());
    let mut entries = entries.map_err(|error| unreadable("manifest directory", directory, &error))?;
    entries.sort_by_key(std::fs::DirEntry::file_name);
    let (mut documents, mut hash, mut is_empty) = (Vec::new(), Sha256::new(), true);
    for entry in entries {
        let path = entry.path();
        let end = path.extension().map(|end| end.to_string_lossy().to_lowercase());
        let is_manifest = matches!(end.as_deref(), Some("yaml" | "yml" | "json"));
        if !is_manifest || entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            continue;
        }
        let text = std::fs::read(&path).map_err(|error| unreadable("file", &path, &error))?;
        if text.is_empty() {
            continue;
        }
        hash.update(&text);
        hash.update([0]);
        is_empty = false;
        let file = path.display().to_string();
        let split = yaml::documents(&text)
            .map_err(|why| format!("failed to split YAML documents in file {}: {why}", quote(&file)))?;
        documents.extend(split.into_iter().map(|text| Document { file: file.clone(), text }));
    }
    let digits: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    Ok((documents, if is_empty { String::new() } else { format!("sha256:{digits}") }))
}

impl Reading {
    /// Takes in a document: an object, or a list of objects, which may be lists in turn.
    fn document(&mut self, file: &str, text: &[u8]) -> Result<(), String> {
        let document = yaml::read(text)?;
        if !document.repeated.is_empty() {
            return Err(format!("strict decoding error: {}", yaml_error(&document.repeated)));
        }
        let mut open = VecDeque::from([document.value]);
        while let Some(value) = open.pop_front() {
            let Value::Object(object) = value else { return Err("Object 'Kind' is missing".to_owned()) };
            let (version, kind) = (fields::text(&object, &["apiVersion"]), fields::text(&object, &["kind"]));
            match (version, kind) {
                (_, "") => return Err("Object 'Kind' is missing".to_owned()),
                ("", _) => return Err("Object 'apiVersion' is missing".to_owned()),
                ("v1", "List") => items(&object).rev().for_each(|item| open.push_front(item.clone())),
                (VERSION, kind) if let Some(place) = self.place(kind) => self.accept(file, place, object)?,
                (VERSION, kind)
                    if let Some(place) = kind.strip_suffix("List").and_then(|kind| self.place(kind)) =>
                {
                    for item in items(&object) {
                        let Value::Object(item) = item else { return Err("an item is no object".to_owned()) };
                        self.accept(file, place, item.clone())?;
                    }
                }
                _ => return Err(format!("unsupported resource type {version}, Kind={kind}")),
            }
        }
        Ok(())
    }

    fn place(&self, kind: &str) -> Option<usize> {
        self.wanted.iter().position(|wanted| wanted.kind.gvk.kind == *kind)
    }

    /// Takes in an object: decodes it strictly, fills in its defaults and checks it.
    fn accept(&mut self, file: &str, place: usize, mut object: Map) -> Result<(), String> {
        let Wanted { kind, built_in } = &self.wanted[place];
        object.extend(kind.gvk.claims());
        let text = Node::sorted(&Value::Object(object.clone()));
        managed::close(&mut object);
        if conform(kind, &mut object)?.unknown {
            return Err(format!("strict decoding error: {}", kind.problems(&text).join(", ")));
        }
        kind.default(&mut object).map_err(|error| error.to_string())?;
        let name = metadata(&object).map_or("", |own| fields::text(own, &["name"])).to_owned();
        let wrong = mistakes(&built_in.rules_of(kind), &object, &name)?;
        if let Some(wrong) = wrong {
            return Err(format!("{} {}: {wrong}", kind.gvk.kind, quote(&name)));
        }
        let kind = kind.gvk.kind.clone();
        self.check_name(file, place, &name)?;
        check_origin(&kind, &name, file, &object)?;
        self.list.push(Manifest { place, name, content: object });
        Ok(())
    }

    fn check_name(&mut self, file: &str, place: usize, name: &str) -> Result<(), String> {
        let (shown, at) = (quote(name), quote(file));
        if name.is_empty() {
            return Err(format!("resource in file {at} must have a name"));
        }
        if !name.ends_with(END) {
            return Err(format!("{shown} in file {at} must have a name ending with {}", quote(END)));
        }
        match self.files.insert((place, name.to_owned()), file.to_owned()) {
            None => Ok(()),
            Some(before) => {
                let before = quote(&before);
                Err(format!("duplicate name {shown} found in file {at} (previously seen in {before})"))
            }
        }
    }

    /// Bindings are of policies in the same directory.
    fn check_references(&self) -> Result<(), String> {
        for Manifest { name, content, .. } in self.list.iter().filter(|manifest| manifest.place > 0) {
            let policy = fields::text(content, &["spec", "policyName"]);
            if !self.files.contains_key(&(0, policy.to_owned())) {
                let (name, policy) = (quote(name), quote(policy));
                return Err(format!(
                    "binding {name} references policy {policy} which does not exist in the manifest directory"
                ));
            }
        }
        Ok(())
    }
}

fn items(list: &Map) -> impl DoubleEndedIterator<Item = &Value> {
    fields::items(list, &["items"]).iter()
}

/// The errors of an object by the rules of its kind. These refuse the names that objects from files have, so they are
/// asked about the name without its suffix.
fn mistakes(rules: &Rules, object: &ObjectMap, name: &str) -> Result<Option<String>, String> {
    let empty = Map::new();
    let own = metadata(object).unwrap_or(&empty);
    let causes = meta::create::validate(own, Scope::Cluster, NameFormat::Dns1123Subdomain);
    let mut renamed = object.clone();
    if let Some(Value::Object(own)) = renamed.get_mut("metadata") {
        own.insert("name", name.strip_suffix(END).unwrap_or(name).into());
    }
    let of_kind = rules.create(&renamed).map_err(|error| error.to_string())?;
    let shown = |cause: &Cause| format!("{}: {}", cause.field, cause.message);
    Ok(aggregate(causes.iter().chain(of_kind.iter()).map(shown)))
}

/// An error if an object from a file refers to something that would have to be stored.
fn check_origin(kind: &str, name: &str, file: &str, object: &ObjectMap) -> Result<(), String> {
    let (shown, empty) = (quote(name), json!({}));
    let spec = object.get("spec").unwrap_or(&empty);
    let has = |member: &str| spec.get(member).is_some_and(|value| !value.is_null());
    match kind {
        "ValidatingAdmissionPolicy" | "MutatingAdmissionPolicy" => match has("paramKind") {
            true => Err(format!("{kind} {shown}: spec.paramKind is not supported for static manifests")),
            false => Ok(()),
        },
        "ValidatingAdmissionPolicyBinding" | "MutatingAdmissionPolicyBinding" => {
            let policy = fields::text(object, &["spec", "policyName"]);
            if !policy.ends_with(END) {
                let (policy, end) = (quote(policy), quote(END));
                return Err(format!("binding {shown}: spec.policyName {policy} must end with {end}"));
            }
            match has("paramRef") {
                true => Err(format!("binding {shown}: spec.paramRef is not supported for static manifests")),
                false => Ok(()),
            }
        }
        _ => {
            let hooks = fields::items(object, &["webhooks"]).iter().filter_map(Value::as_object);
            for hook in hooks {
                let webhook = quote(fields::text(hook, &["name"]));
                let at = format!("webhook {webhook} in {shown} (file {})", quote(file));
                let config = fields::object(hook, "clientConfig");
                if config
                    .is_some_and(|config| config.get("service").is_some_and(|service| !service.is_null()))
                {
                    return Err(format!(
                        "{at}: clientConfig.service is not supported for static manifests; use clientConfig.url instead"
                    ));
                }
            }
            Ok(())
        }
    }
}

/// Go's words for why a file cannot be read.
fn words(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "no such file or directory".to_owned(),
        io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests;
