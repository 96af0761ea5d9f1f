//! The file of `--authentication-config`: issuers of tokens, and who may be anonymous.

use std::path::{Path, PathBuf};

use super::authn::Anonymous;
use super::oidc::{Expression, Issuer, Mapping, Subject, check_authorities};
use crate::codec::yaml;
use crate::egress::Network;
use crate::expression::Type;
use crate::fields;
use crate::gotext::quote;
use crate::tree::{Map, Value};

const VERSIONS: [&str; 3] =
    ["apiserver.config.k8s.io/v1", "apiserver.config.k8s.io/v1beta1", "apiserver.config.k8s.io/v1alpha1"];
const KIND: &str = "AuthenticationConfiguration";
const MOST_ISSUERS: usize = 64;
const ALGORITHMS: [&str; 9] =
    ["RS256", "RS384", "RS512", "ES256", "ES384", "ES512", "PS256", "PS384", "PS512"];

/// The content of the file.
#[derive(Debug)]
pub struct AuthenticationConfiguration {
    pub issuers: Vec<Issuer>,
    /// `None` leaves it to the flag.
    pub anonymous: Option<Anonymous>,
}

/// Why the file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigurationError {
    #[error("cannot read {}: {source}", path.display())]
    Read { path: PathBuf, source: std::io::Error },
    #[error("{}: {why}", path.display())]
    Invalid { path: PathBuf, why: String },
}

/// The content of a file, and its text. `own` are the issuers of tokens of service accounts.
pub fn load(
    path: &Path,
    own: &[String],
) -> Result<(AuthenticationConfiguration, Vec<u8>), ConfigurationError> {
    let text =
        std::fs::read(path).map_err(|source| ConfigurationError::Read { path: path.to_owned(), source })?;
    match parse(&text, own) {
        Ok(configuration) => Ok((configuration, text)),
        Err(why) => Err(ConfigurationError::Invalid { path: path.to_owned(), why }),
    }
}

pub fn parse(text: &[u8], own: &[String]) -> Result<AuthenticationConfiguration, String> {
    let file = yaml::parse(text)?;
    let root = file.as_object().ok_or("no object")?;
    let mut problems = Problems::default();
    problems.unknown(root, "", &["apiVersion", "kind", "jwt", "anonymous"]);
    let (version, kind) = (fields::text(root, &["apiVersion"]), fields::text(root, &["kind"]));
    if kind != KIND || !VERSIONS.contains(&version) {
        return Err(format!("no kind {} is registered for version {}", quote(kind), quote(version)));
    }
    let entries = fields::items(root, &["jwt"]);
    if entries.len() > MOST_ISSUERS {
        problems.add("jwt", &format!("Too many: {}: must have at most {MOST_ISSUERS} items", entries.len()));
    }
    let mut issuers: Vec<Issuer> = Vec::new();
    for (index, entry) in entries.iter().enumerate() {
        let at = format!("jwt[{index}]");
        let empty = Map::new();
        let issuer = Reader { problems: &mut problems, own }.issuer(entry.as_object().unwrap_or(&empty), &at);
        if issuers.iter().any(|other| other.url == issuer.url) {
            problems.add(&format!("{at}.issuer.url"), &format!("Duplicate value: {}", quote(&issuer.url)));
        }
        issuers.push(issuer);
    }
    let anonymous = root.get("anonymous").and_then(Value::as_object);
    let anonymous = anonymous.map(|anonymous| read_anonymous(anonymous, &mut problems));
    match &*problems.0 {
        [] => Ok(AuthenticationConfiguration { issuers, anonymous }),
        [one] => Err(one.clone()),
        several => Err(format!("[{}]", several.join(", "))),
    }
}

fn read_anonymous(anonymous: &Map, problems: &mut Problems) -> Anonymous {
    problems.unknown(anonymous, "anonymous.", &["enabled", "conditions"]);
    let is_enabled = anonymous.get("enabled").and_then(Value::as_bool).unwrap_or_default();
    let conditions = fields::items(anonymous, &["conditions"]);
    let paths: Vec<String> = conditions
        .iter()
        .filter_map(|condition| condition.get("path").and_then(Value::as_str))
        .map(str::to_owned)
        .collect();
    match (is_enabled, &*paths) {
        (false, []) => Anonymous::Nowhere,
        (false, _) => {
            let why = "Invalid value: enabled should be set to true when conditions are defined";
            problems.add("anonymous.conditions", why);
            Anonymous::Nowhere
        }
        (true, []) => Anonymous::Everywhere,
        (true, _) => Anonymous::At(paths),
    }
}

/// The errors of the file.
#[derive(Default)]
struct Problems(Vec<String>);

impl Problems {
    fn add(&mut self, at: &str, why: &str) {
        self.0.push(format!("{at}: {why}"));
    }

    fn unknown(&mut self, object: &Map, prefix: &str, known: &[&str]) {
        for (key, _) in object {
            if !known.contains(&key.as_str()) {
                self.0.push(format!("strict decoding error: unknown field \"{prefix}{key}\""));
            }
        }
    }
}

struct Reader<'a> {
    problems: &'a mut Problems,
    own: &'a [String],
}

impl Reader<'_> {
    fn issuer(&mut self, entry: &Map, at: &str) -> Issuer {
        let known = ["issuer", "claimMappings", "claimValidationRules", "userValidationRules"];
        self.problems.unknown(entry, &format!("{at}."), &known);
        let empty = Map::new();
        let issuer = fields::object(entry, "issuer").unwrap_or(&empty);
        let known = [
            "url",
            "discoveryURL",
            "certificateAuthority",
            "audiences",
            "audienceMatchPolicy",
            "egressSelectorType",
        ];
        self.problems.unknown(issuer, &format!("{at}.issuer."), &known);
        let url = fields::text(issuer, &["url"]).to_owned();
        self.check_url(&url, &format!("{at}.issuer.url"));
        if self.own.contains(&url) {
            let own: Vec<String> = self.own.iter().map(|issuer| quote(issuer)).collect();
            let why = format!(
                "Invalid value: {}: URL must not overlap with disallowed issuers: [{}]",
                quote(&url),
                own.join(" ")
            );
            self.problems.add(&format!("{at}.issuer.url"), &why);
        }
        let discovery_url = issuer.get("discoveryURL").and_then(Value::as_str).filter(|url| !url.is_empty());
        if let Some(discovery_url) = discovery_url {
            self.check_url(discovery_url, &format!("{at}.issuer.discoveryURL"));
            if discovery_url == url {
                let why = "Invalid value: discoveryURL must be different from URL";
                self.problems.add(&format!("{at}.issuer.discoveryURL"), why);
            }
        }
        let authorities = fields::text(issuer, &["certificateAuthority"]).as_bytes();
        if let Err(why) = check_authorities(authorities) {
            let why = format!("Invalid value: \"<omitted>\": {why}");
            self.problems.add(&format!("{at}.issuer.certificateAuthority"), &why);
        }
        let audiences = self.audiences(issuer, at);
        let mut mapping = self.mapping(fields::object(entry, "claimMappings").unwrap_or(&empty), at);
        self.rules(entry, at, &mut mapping);
        self.check_email(&mapping, at);
        Issuer {
            url,
            discovery_url: discovery_url.map(str::to_owned),
            authorities: authorities.to_vec(),
            audiences,
            algorithms: ALGORITHMS.map(str::to_owned).to_vec(),
            network: self.network(issuer, at),
            mapping,
        }
    }

    fn network(&mut self, issuer: &Map, at: &str) -> Option<Network> {
        match fields::text(issuer, &["egressSelectorType"]) {
            "" => None,
            "controlplane" => Some(Network::ControlPlane),
            "cluster" => Some(Network::Cluster),
            other => {
                let why = "egress selector must be either controlplane or cluster";
                let why = format!("Invalid value: {}: {why}", quote(other));
                self.problems.add(&format!("{at}.issuer.egressSelectorType"), &why);
                None
            }
        }
    }

    fn check_url(&mut self, text: &str, at: &str) {
        if text.is_empty() {
            return self.problems.add(at, "Required value: URL is required");
        }
        let why = match url::Url::parse(text) {
            Err(error) => error.to_string(),
            Ok(url) if url.scheme() != "https" => "URL scheme must be https".to_owned(),
            Ok(url) if !url.username().is_empty() || url.password().is_some() => {
                "URL must not contain a username or password".to_owned()
            }
            Ok(url) if url.query().is_some() => "URL must not contain a query".to_owned(),
            Ok(url) if url.fragment().is_some() => "URL must not contain a fragment".to_owned(),
            Ok(_) => return,
        };
        self.problems.add(at, &format!("Invalid value: {}: {why}", quote(text)));
    }

    fn audiences(&mut self, issuer: &Map, at: &str) -> Vec<String> {
        let place = format!("{at}.issuer.audiences");
        let items = fields::items(issuer, &["audiences"]).iter().filter_map(Value::as_str);
        let audiences: Vec<String> = items.map(str::to_owned).collect();
        if audiences.is_empty() {
            self.problems.add(&place, "Required value: at least one jwt.issuer.audiences is required");
        }
        for (index, audience) in audiences.iter().enumerate() {
            if audience.is_empty() {
                self.problems.add(&format!("{place}[{index}]"), "Required value");
            } else if audiences[..index].contains(audience) {
                self.problems
                    .add(&format!("{place}[{index}]"), &format!("Duplicate value: {}", quote(audience)));
            }
        }
        let policy = fields::text(issuer, &["audienceMatchPolicy"]);
        let is_any = policy == "MatchAny";
        if audiences.len() > 1 && !is_any {
            let why = "audienceMatchPolicy must be MatchAny for multiple audiences";
            let why = format!("Invalid value: {}: {why}", quote(policy));
            self.problems.add(&format!("{at}.issuer.audienceMatchPolicy"), &why);
        } else if !is_any && !policy.is_empty() {
            let why = "audienceMatchPolicy must be empty or MatchAny for single audience";
            let why = format!("Invalid value: {}: {why}", quote(policy));
            self.problems.add(&format!("{at}.issuer.audienceMatchPolicy"), &why);
        }
        audiences
    }

    fn mapping(&mut self, mappings: &Map, at: &str) -> Mapping {
        let at = format!("{at}.claimMappings");
        self.problems.unknown(mappings, &format!("{at}."), &["username", "groups", "uid", "extra"]);
        let empty = Map::new();
        let part = |name: &str| fields::object(mappings, name).unwrap_or(&empty);
        let (username, groups, uid) = (part("username"), part("groups"), part("uid"));
        let text = |part: &Map, field: &str| fields::text(part, &[field]).to_owned();
        let mut mapping = Mapping {
            username_claim: text(username, "claim"),
            username_prefix: text(username, "prefix"),
            groups_claim: text(groups, "claim"),
            groups_prefix: text(groups, "prefix"),
            uid_claim: text(uid, "claim"),
            ..Mapping::default()
        };
        let one = [Type::String];
        let several = [Type::String, Type::list(Type::String), Type::list(Type::Any), Type::list(Type::Dyn)];
        let must = "must evaluate to a string or a list of strings";
        mapping.username_expression =
            self.expression(username, &at, "username", &one, "must evaluate to a string");
        mapping.groups_expression = self.expression(groups, &at, "groups", &several, must);
        mapping.uid_expression = self.expression(uid, &at, "uid", &one, "must evaluate to a string");
        if mapping.username_claim.is_empty() && mapping.username_expression.is_none() {
            self.problems.add(&format!("{at}.username"), "Required value: claim or expression is required");
        }
        for (name, part) in [("username", username), ("groups", groups)] {
            let has_claim = !fields::text(part, &["claim"]).is_empty();
            if has_claim && !part.contains_key("prefix") {
                let why = "Required value: prefix is required when claim is set. It can be set to an empty string to disable prefixing";
                self.problems.add(&format!("{at}.{name}.prefix"), why);
            }
            if has_claim && part.contains_key("expression") {
                let why = "Invalid value: claim and expression can't both be set";
                self.problems.add(&format!("{at}.{name}"), why);
            }
        }
        self.extra(mappings, &at, &several, &mut mapping);
        mapping
    }

    fn expression(
        &mut self,
        part: &Map,
        at: &str,
        name: &str,
        results: &[Type],
        must: &str,
    ) -> Option<Expression> {
        let text = part.get("expression").and_then(Value::as_str).filter(|text| !text.is_empty())?;
        self.compiled(text, &format!("{at}.{name}.expression"), Subject::Claims, results, must)
    }

    fn compiled(
        &mut self,
        text: &str,
        at: &str,
        subject: Subject,
        results: &[Type],
        must: &str,
    ) -> Option<Expression> {
        match Expression::compile(text, subject, results, must) {
            Ok(expression) => Some(expression),
            Err(why) => {
                self.problems.add(at, &format!("Invalid value: {}: {why}", quote(text)));
                None
            }
        }
    }

    fn extra(&mut self, mappings: &Map, at: &str, results: &[Type], mapping: &mut Mapping) {
        for (index, item) in fields::items(mappings, &["extra"]).iter().enumerate() {
            let at = format!("{at}.extra[{index}]");
            let text = |field: &str| item.get(field).and_then(Value::as_str).unwrap_or_default();
            let (key, expression) = (text("key"), text("valueExpression"));
            let domain = key.split_once('/').map(|(domain, _)| domain);
            let is_reserved = |domain: &str| {
                ["k8s.io", "kubernetes.io"].iter().any(|own| {
                    domain == *own || domain.strip_suffix(own).is_some_and(|rest| rest.ends_with('.'))
                })
            };
            let wrong = match domain {
                None => Some("must be a domain-prefixed path (such as \"acme.io/foo\")"),
                Some(domain) if is_reserved(domain) => {
                    Some("k8s.io, kubernetes.io and their subdomains are reserved for Kubernetes use")
                }
                Some(_) if key != key.to_lowercase() => Some("key must be lowercase"),
                Some(_) if mapping.extra.iter().any(|(other, _)| other == key) => Some("duplicate key"),
                Some(_) => None,
            };
            if let Some(why) = wrong {
                self.problems.add(&format!("{at}.key"), &format!("Invalid value: {}: {why}", quote(key)));
            }
            let must = "must evaluate to a string or a list of strings";
            let place = format!("{at}.valueExpression");
            if let Some(expression) = self.compiled(expression, &place, Subject::Claims, results, must) {
                mapping.extra.push((key.to_owned(), expression));
            }
        }
    }

    fn rules(&mut self, entry: &Map, at: &str, mapping: &mut Mapping) {
        let must = "must evaluate to bool";
        for (index, rule) in fields::items(entry, &["claimValidationRules"]).iter().enumerate() {
            let at = format!("{at}.claimValidationRules[{index}]");
            let text = |field: &str| rule.get(field).and_then(Value::as_str).unwrap_or_default();
            let message = text("message").to_owned();
            match (text("claim"), text("expression")) {
                ("", "") => self.problems.add(&at, "Required value: claim or expression is required"),
                (claim, "") => mapping.required.push((claim.to_owned(), text("requiredValue").to_owned())),
                ("", expression) => {
                    let place = format!("{at}.expression");
                    let compiled = self.compiled(expression, &place, Subject::Claims, &[Type::Bool], must);
                    mapping.claim_rules.extend(compiled.map(|rule| (rule, message)));
                }
                (claim, _) => {
                    let why =
                        format!("Invalid value: {}: claim and expression can't both be set", quote(claim));
                    self.problems.add(&at, &why);
                }
            }
        }
        for (index, rule) in fields::items(entry, &["userValidationRules"]).iter().enumerate() {
            let at = format!("{at}.userValidationRules[{index}].expression");
            let text = |field: &str| rule.get(field).and_then(Value::as_str).unwrap_or_default();
            let compiled = self.compiled(text("expression"), &at, Subject::User, &[Type::Bool], must);
            mapping.user_rules.extend(compiled.map(|rule| (rule, text("message").to_owned())));
        }
    }

    /// An unverified address must not become a name unnoticed.
    fn check_email(&mut self, mapping: &Mapping, at: &str) {
        let Some(username) = mapping.username_expression.as_ref().filter(|name| name.names("email")) else {
            return;
        };
        let mut others = mapping.extra.iter().map(|(_, value)| value);
        let mut rules = mapping.claim_rules.iter().map(|(rule, _)| rule);
        let verified = |expression: &Expression| expression.names("email_verified");
        if !verified(username) && !others.any(verified) && !rules.any(verified) {
            let why = "Invalid value: claims.email_verified must be used in claimMappings.username.expression or claimMappings.extra[*].valueExpression or claimValidationRules[*].expression when claims.email is used in claimMappings.username.expression";
            self.problems.add(&format!("{at}.claimMappings.username.expression"), why);
        }
    }
}
