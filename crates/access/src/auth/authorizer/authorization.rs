//! The authorizers of a server in their order.

use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwap;

use super::{Answer, Attributes, Authorizer, Decision, Foresight, Grant, Reason, UserRules};
use crate::cache::Cache;
use crate::metrics::DecisionMetrics;
use crate::user::{MASTERS, User};

/// Paths that everybody may read while a server starts. Afterwards the role `system:public-info-viewer` says who may,
/// and these are decided from memory: whoever asks whether the server is alive is answered without the database.
pub const PUBLIC_PATHS: [&str; 5] = ["/healthz", "/livez", "/readyz", "/version", "/version/"];

pub fn is_public_path(path: &str) -> bool {
    PUBLIC_PATHS.contains(&path)
}

/// Asks members of `system:masters` nothing, and for others one authorizer after the other until one has an opinion.
///
/// Until the authorizers are installed, which need the cache, others may only read the public paths.
#[derive(Clone, Default)]
pub struct Authorization {
    installed: Arc<OnceLock<Installed>>,
}

struct Installed {
    authorizers: Vec<Member>,
    /// Set if other servers write, too: what they have answered counts, so decisions wait until it is known here.
    newest: Option<Cache>,
}

/// One of the authorizers.
pub struct Member {
    pub authorizer: Arc<dyn Authorizer>,
    /// `None` if it consists of members that have names.
    pub name: Option<Arc<str>>,
    /// `None` if its own members count theirs.
    pub decisions: Option<DecisionMetrics>,
}

impl Member {
    fn count(&self, decision: &Decision) {
        match (decision, &self.decisions) {
            (Decision::Allow(_), Some(decisions)) => decisions.allowed.increment(1),
            (Decision::Deny(_), Some(decisions)) => decisions.denied.increment(1),
            (Decision::NoOpinion(_), _) | (_, None) => {}
        }
    }

    /// The reason of this authorizer, as it is told beside those of the others.
    fn reason(&self, reason: Reason) -> Reason {
        match &self.name {
            Some(name) => reason.named(name),
            None => reason,
        }
    }
}

/// Authorizers that are replaced while the server runs. Each decision is made by those of one moment.
pub struct Replaceable {
    members: ArcSwap<Vec<Member>>,
}

impl Replaceable {
    pub fn new(members: Vec<Member>) -> Self {
        Self { members: ArcSwap::from_pointee(members) }
    }

    pub fn replace(&self, members: Vec<Member>) {
        self.members.store(Arc::new(members));
    }
}

impl Authorizer for Replaceable {
    fn decide<'a>(&'a self, attributes: &'a Attributes<'a>) -> Answer<'a> {
        let members = self.members.load_full();
        Answer::Later(Box::pin(async move { decide_in_order(&members, attributes).decided().await }))
    }

    fn foresee(&self, attributes: &Attributes<'_>) -> Foresight {
        foresee_in_order(&self.members.load(), attributes)
    }

    fn rules(&self, user: &User, namespace: &str) -> UserRules {
        rules_of(&self.members.load(), user, namespace)
    }
}

/// The rules of all authorizers together.
fn rules_of(members: &[Member], user: &User, namespace: &str) -> UserRules {
    let mut all = UserRules::default();
    for member in members {
        let UserRules { rules, incomplete, errors } = member.authorizer.rules(user, namespace);
        all.rules.extend(rules);
        all.incomplete |= incomplete;
        all.errors.extend(errors);
    }
    all
}

impl Authorization {
    /// Decides by these authorizers from now on. Only the first call has an effect.
    pub fn install(&self, authorizers: Vec<Member>, cache: &Cache) {
        let newest = cache.backend().shared().then(|| cache.clone());
        let _ = self.installed.set(Installed { authorizers, newest });
    }
}

impl Authorization {
    /// The grant by which this server's own state allows a request, if another server may know better; `None` where a
    /// decision tells at once, or where it may be otherwise.
    pub fn foreseen(&self, attributes: &Attributes<'_>) -> Option<Grant> {
        let Installed { authorizers, newest } = self.installed.get()?;
        if newest.is_none() || attributes.user.is_in(MASTERS) {
            return None;
        }
        match foresee_in_order(authorizers, attributes) {
            Foresight::Allowed(grant) => Some(grant),
            Foresight::NoOpinion | Foresight::Unknown => None,
        }
    }
}

/// Decides by what this server knows, without a question about what others have answered.
pub struct AsKnown<'a>(pub &'a Authorization);

impl Authorizer for AsKnown<'_> {
    fn decide<'a>(&'a self, attributes: &'a Attributes<'a>) -> Answer<'a> {
        match self.0.installed.get() {
            Some(installed) if !attributes.user.is_in(MASTERS) => {
                decide_in_order(&installed.authorizers, attributes)
            }
            _ => self.0.decide(attributes),
        }
    }
}

impl Authorizer for Authorization {
    fn decide<'a>(&'a self, attributes: &'a Attributes<'a>) -> Answer<'a> {
        if attributes.user.is_in(MASTERS) {
            return Answer::Now(Decision::Allow(Reason::None));
        }
        let is_public = !attributes.is_resource() && is_public_path(attributes.path);
        match self.installed.get() {
            Some(Installed { authorizers, newest: Some(cache) }) if !is_public => {
                Answer::Later(Box::pin(decide_by_newest(cache, authorizers, attributes)))
            }
            Some(Installed { authorizers, .. }) => decide_in_order(authorizers, attributes),
            None if is_public => Answer::Now(Decision::Allow(Reason::None)),
            None => Answer::Now(Decision::NoOpinion(Reason::None)),
        }
    }

    fn rules(&self, user: &User, namespace: &str) -> UserRules {
        let installed = self.installed.get();
        installed.map_or_else(UserRules::default, |all| rules_of(&all.authorizers, user, namespace))
    }
}

/// Decides by everything that any server has answered before.
async fn decide_by_newest<'a>(
    cache: &'a Cache,
    members: &'a [Member],
    attributes: &'a Attributes<'a>,
) -> Decision {
    match cache.fresh_for_request().await {
        Ok(_) => decide_in_order(members, attributes).decided().await,
        Err(error) => {
            tracing::warn!(%error, "cannot authorize a request, since the newest policy is not known");
            Decision::NoOpinion(Reason::failed("the newest policy is not known"))
        }
    }
}

fn foresee_in_order(members: &[Member], attributes: &Attributes<'_>) -> Foresight {
    for member in members {
        match member.authorizer.foresee(attributes) {
            Foresight::NoOpinion => {}
            Foresight::Unknown => return Foresight::Unknown,
            Foresight::Allowed(grant) => {
                member.count(&Decision::Allow(Reason::None));
                return Foresight::Allowed(grant);
            }
        }
    }
    Foresight::NoOpinion
}

fn decide_in_order<'a>(members: &'a [Member], attributes: &'a Attributes<'a>) -> Answer<'a> {
    let mut reasons = Reason::None;
    for (at, member) in members.iter().enumerate() {
        match member.authorizer.decide(attributes) {
            Answer::Now(Decision::NoOpinion(reason)) => reasons = reasons.and(member.reason(reason)),
            Answer::Now(decision) => {
                member.count(&decision);
                return Answer::Now(decision);
            }
            Answer::Later(decision) => {
                let rest = &members[at + 1..];
                return Answer::Later(Box::pin(async move {
                    let decision = decision.await;
                    member.count(&decision);
                    match decision {
                        Decision::NoOpinion(reason) => {
                            let reasons = reasons.and(member.reason(reason));
                            match Box::pin(decide_in_order(rest, attributes).decided()).await {
                                Decision::NoOpinion(more) => Decision::NoOpinion(reasons.and(more)),
                                decision => decision,
                            }
                        }
                        decision => decision,
                    }
                }));
            }
        }
    }
    Answer::Now(Decision::NoOpinion(reasons))
}

#[cfg(test)]
mod tests {
    use super::super::authorize;
    use super::*;

    struct Says(fn() -> Decision);

    impl Authorizer for Says {
        fn decide<'a>(&'a self, _: &'a Attributes<'a>) -> Answer<'a> {
            match (self.0)() {
                // One in two has to ask.
                decision @ Decision::Deny(_) => Answer::Later(Box::pin(async { decision })),
                decision => Answer::Now(decision),
            }
        }
    }

    async fn decided(authorizers: &[fn() -> Decision]) -> (&'static str, String) {
        let name: Option<Arc<str>> = Some("says".into());
        let member = |says: &fn() -> Decision| {
            let authorizer = Arc::new(Says(*says));
            Member { authorizer, name: name.clone(), decisions: None }
        };
        let authorizers: Vec<Member> = authorizers.iter().map(member).collect();
        let user = User::default();
        let attributes = Attributes::of_path(&user, "get", "/x");
        match decide_in_order(&authorizers, &attributes).decided().await {
            Decision::Allow(reason) => ("allow", reason.text(&attributes)),
            Decision::Deny(reason) => ("deny", reason.text(&attributes)),
            Decision::NoOpinion(reason) => ("none", reason.text(&attributes)),
        }
    }

    #[tokio::test]
    async fn the_first_opinion_counts() {
        type Opinion = fn() -> Decision;
        let yes: Opinion = || Decision::Allow(Reason::Fixed("yes"));
        let no: Opinion = || Decision::Deny(Reason::Fixed("no"));
        let none: Opinion = || Decision::NoOpinion(Reason::Fixed("hm"));
        assert_eq!(decided(&[none, yes, no]).await, ("allow", "yes".to_owned()));
        assert_eq!(decided(&[none, no, yes]).await, ("deny", "no".to_owned()));
        assert_eq!(decided(&[none, none]).await, ("none", "says: hm\nsays: hm".to_owned()));
        assert_eq!(decided(&[]).await, ("none", String::new()));
    }

    /// Whoever cannot tell without a question stands before all that follow.
    #[test]
    fn what_nobody_can_foresee_is_decided() {
        struct Foresees(fn() -> Foresight);

        impl Authorizer for Foresees {
            fn decide<'a>(&'a self, _: &'a Attributes<'a>) -> Answer<'a> {
                unreachable!("nobody is asked")
            }

            fn foresee(&self, _: &Attributes<'_>) -> Foresight {
                (self.0)()
            }
        }

        let yes: fn() -> Foresight = || Foresight::Allowed(Grant::default());
        let none: fn() -> Foresight = || Foresight::NoOpinion;
        let unknown: fn() -> Foresight = || Foresight::Unknown;
        for (authorizers, expected) in [
            (&[none, yes][..], "allowed"),
            (&[yes, unknown], "allowed"),
            (&[none, unknown, yes], "unknown"),
            (&[none], "no opinion"),
            (&[], "no opinion"),
        ] {
            let member = |says: &fn() -> Foresight| {
                let authorizer = Arc::new(Foresees(*says));
                Member { authorizer, name: None, decisions: None }
            };
            let members: Vec<Member> = authorizers.iter().map(member).collect();
            let user = User::default();
            let told = match foresee_in_order(&members, &Attributes::of_path(&user, "get", "/x")) {
                Foresight::Allowed(_) => "allowed",
                Foresight::Unknown => "unknown",
                Foresight::NoOpinion => "no opinion",
            };
            assert_eq!(told, expected);
        }
    }

    #[tokio::test]
    async fn before_authorizers_are_installed_masters_may_everything_and_others_read_public_paths() {
        let authorization = Authorization::default();
        let may = async |user: &User, path: &str| {
            authorize(&authorization, &Attributes::of_path(user, "get", path)).await.is_ok()
        };
        assert!(may(&User::admin(), "/metrics").await);
        assert!(may(&User::anonymous(), "/readyz").await);
        assert!(!may(&User::anonymous(), "/readyz/ping").await);
    }
}
