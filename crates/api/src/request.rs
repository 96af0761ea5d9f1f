//! A request as verbs and admission see it. It is made once, in `http`, and handed down to the store.

use std::sync::LazyLock;

use tokio::time::Instant;

use crate::Target;
use crate::audit::Record;
use crate::auth::authorizer::{AlwaysAllow, Attributes, Authorizer, authorize};
use crate::auth::foreseen::Foreseen;
use crate::error::Error;
use crate::kinds::behavior::part::Part;
use crate::metrics::WebhookTime;
use crate::options::DryRun;
use crate::options::delete::DeleteOptions;
use crate::options::strictness::Strictness;
use crate::options::write::{FieldValidation, Sent, WriteOptions};
use crate::patch::apply::ownership::Conflicts;
use crate::revision::Revision;
use crate::schema::resource::Verb;
use crate::storage::Writer;
use crate::traces::Span;
use crate::user::User;
use crate::warnings::Warnings;

/// A request of a user: its verb, the object that it is for, and its options. For another object, a copy with another
/// target is made.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    pub user: &'a User,
    /// The user who acts in the name of `user`; empty if nobody does.
    pub impersonator: &'a str,
    /// The client's program: the first word of its User-Agent.
    pub client: &'a str,
    /// The verb as authorizers name it.
    pub verb: Verb,
    /// The name is empty if the URL names no object.
    pub target: Target<'a>,
    /// The subresource in the URL; empty for the object itself.
    pub subresource: &'a str,
    pub options: Options<'a>,
    /// Collects warnings for the client.
    pub warnings: &'a Warnings,
    /// Decides what else the user may do: a PATCH that creates an object also needs the right to create.
    pub authorizer: &'a dyn Authorizer,
    /// Set if the request was let in by what this server knew, and what others know may forbid it.
    pub foreseen: Option<&'a Foreseen>,
    /// The record of the request, if an audit policy wants one.
    pub audit: Option<&'a Record>,
    /// The request's part of a trace, if it is sampled.
    pub span: Option<&'a Span>,
    /// When the client gives up; `None` for requests of the server's own.
    pub deadline: Option<Instant>,
    /// The sum of the time that webhooks take, if it is measured.
    pub webhook_time: Option<&'a WebhookTime>,
    /// Whether webhooks and policies see the request.
    pub hooks: Hooks,
    /// The state by which a controller has decided upon the request, where something that is *not* there has decided; see
    /// [`Mutation::decided_at`](crate::storage::Mutation::decided_at).
    pub decided_at: Option<Revision>,
}

/// Whether webhooks and policies see a request, beside the built-in plugins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hooks {
    See,
    /// The server needs the write for itself, or clients need the answer to get in at all (reviews): a webhook that
    /// refuses it would end the server, or lock everybody out.
    Pass,
}

/// The parsed options of the verb.
#[derive(Clone, Copy)]
pub enum Options<'a> {
    /// The verb has no options, or they have not been parsed yet.
    None,
    Write(&'a WriteOptions),
    Delete(&'a DeleteOptions),
}

static NO_WRITE_OPTIONS: WriteOptions = WriteOptions {
    field_manager: None,
    field_validation: FieldValidation::Warn,
    dry_run: DryRun::No,
    conflicts: Conflicts::Refuse,
    sent: Sent { manager: false, validation: false },
};
static NO_DELETE_OPTIONS: DeleteOptions = DeleteOptions::NONE;
static SERVER: LazyLock<User> = LazyLock::new(User::apiserver);

impl<'a> Request<'a> {
    /// A request made by the server itself. Everything is allowed, and warnings are dropped.
    pub fn own(verb: Verb, target: Target<'a>) -> Self {
        Self {
            user: &SERVER,
            impersonator: "",
            client: "",
            verb,
            target,
            subresource: "",
            options: Options::None,
            warnings: &Warnings::UNREAD,
            authorizer: &AlwaysAllow,
            foreseen: None,
            audit: None,
            span: None,
            deadline: None,
            webhook_time: None,
            hooks: Hooks::Pass,
            decided_at: None,
        }
    }

    /// Lets webhooks and policies see the request: it does what other controllers do through upstream's API.
    pub fn seen_by_hooks(self) -> Self {
        Self { hooks: Hooks::See, ..self }
    }

    /// Lets the request fail if what this state has shown may have been taken back since.
    pub fn decided_at(self, revision: Revision) -> Self {
        Self { decided_at: Some(revision), ..self }
    }

    pub fn with(self, options: impl Into<Options<'a>>) -> Self {
        Self { options: options.into(), ..self }
    }

    pub fn on(self, part: Part) -> Self {
        Self { subresource: part.subresource(), ..self }
    }

    /// The part of the object that the request changes. Subresources that are not a part of the object have verbs of
    /// their own.
    pub fn part(&self) -> Part {
        Part::of(Some(self.subresource).filter(|name| !name.is_empty())).unwrap_or(Part::Main)
    }

    /// The request as the history tells it of a change.
    pub fn writer(&self, manager: &str) -> Writer {
        Writer {
            username: self.user.name.to_string(),
            impersonator: self.impersonator.to_owned(),
            verb: self.verb.as_str().to_owned(),
            subresource: self.subresource.to_owned(),
            manager: manager.to_owned(),
            client: self.client.to_owned(),
        }
    }

    /// How strictly the body is decoded.
    pub fn strictness(&self) -> Strictness<'a> {
        Strictness { validation: self.options.write().field_validation, warnings: self.warnings }
    }

    /// Whether nobody has confirmed yet that the user may make the request.
    pub fn is_foreseen(&self) -> bool {
        self.foreseen.is_some_and(Foreseen::is_open)
    }

    /// 403 unless the user may make the request by all that any server has answered before it came. What is written without
    /// this is permitted by the rows that its commit requires.
    pub async fn confirm(&self) -> Result<(), Error> {
        if let Some(foreseen) = self.foreseen.filter(|foreseen| foreseen.is_open()) {
            foreseen.prove().await?;
            self.authorize(self.verb).await?;
            foreseen.confirmed();
        }
        Ok(())
    }

    /// Called when a commit that has required what [`Request::foreseen`] names has passed.
    pub fn committed(&self) {
        if let Some(foreseen) = self.foreseen {
            foreseen.confirmed();
        }
    }

    /// 403 unless the user may also do this to the object.
    pub async fn authorize(&self, verb: Verb) -> Result<(), Error> {
        Ok(authorize(self.authorizer, &self.attributes(verb.as_str())).await.map(drop)?)
    }

    /// The attributes by which the user may do this to the object, or may not.
    pub fn attributes(&self, verb: &'a str) -> Attributes<'a> {
        let definition = &self.target.resource.definition;
        let attributes = Attributes {
            group: definition.group(),
            version: definition.version(),
            resource: &definition.plural,
            subresource: self.subresource,
            name: self.target.name,
            ..Attributes::of_path(self.user, verb, "")
        };
        attributes.within(self.target.namespace)
    }
}

impl<'a> Options<'a> {
    pub fn dry_run(self) -> DryRun {
        match self {
            Options::None => DryRun::No,
            Options::Write(options) => options.dry_run,
            Options::Delete(options) => options.dry_run,
        }
    }

    /// The options of a write; for other verbs, the default ones: a DELETE that marks an object writes it, too.
    pub fn write(self) -> &'a WriteOptions {
        match self {
            Options::Write(options) => options,
            Options::None | Options::Delete(_) => &NO_WRITE_OPTIONS,
        }
    }

    /// The options of a DELETE; for other verbs, the default ones.
    pub fn delete(self) -> &'a DeleteOptions {
        match self {
            Options::Delete(options) => options,
            Options::None | Options::Write(_) => &NO_DELETE_OPTIONS,
        }
    }
}

impl<'a> From<&'a WriteOptions> for Options<'a> {
    fn from(options: &'a WriteOptions) -> Self {
        Self::Write(options)
    }
}

impl<'a> From<&'a DeleteOptions> for Options<'a> {
    fn from(options: &'a DeleteOptions) -> Self {
        Self::Delete(options)
    }
}
