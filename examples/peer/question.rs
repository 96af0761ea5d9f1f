//! The questions, and who answers them.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rowplane::codec::protobuf::{self, Envelope};
use rowplane::patch::strategic;
use rowplane::schema::types::{MessageId, Types};
use rowplane::tree::{Map, Value};
use serde::{Deserialize, Serialize};

use crate::apply::{Apply, Update};

pub type Object = Map;

#[derive(Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case")]
pub enum Question {
    /// The JSON of an envelope.
    Decode {
        envelope: String,
    },
    /// The envelope of JSON.
    Encode {
        object: Object,
    },
    Apply(Apply),
    Update(Update),
    Strategic {
        live: Object,
        patch: Value,
    },
}

#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Answer {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object: Option<Object>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub envelope: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub managers: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

impl Question {
    pub fn answer(self) -> Answer {
        let answered = match self {
            Self::Decode { envelope } => decode(&envelope),
            Self::Encode { object } => encode(&object),
            Self::Apply(apply) => apply.answer(),
            Self::Update(update) => update.answer(),
            Self::Strategic { live, patch } => merge(live, &patch),
        };
        answered.unwrap_or_else(|refused| Answer { refused: Some(refused), ..Answer::default() })
    }
}

fn decode(envelope: &str) -> Result<Answer, String> {
    let bytes = STANDARD.decode(envelope).map_err(text)?;
    let envelope = Envelope::parse(&bytes).map_err(text)?;
    let members = protobuf::decode(&envelope.api_version, &envelope.kind, envelope.raw).map_err(text)?;
    let claims = [("kind", envelope.kind), ("apiVersion", envelope.api_version)];
    let claims = claims.map(|(name, claim)| (name.into(), claim.into()));
    let object = claims.into_iter().chain(members).collect();
    Ok(Answer { object: Some(object), ..Answer::default() })
}

fn encode(object: &Object) -> Result<Answer, String> {
    let (api_version, kind) = claims(object);
    let raw = protobuf::encode(api_version, kind, object).map_err(text)?;
    let envelope = STANDARD.encode(Envelope::wrap(api_version, kind, &raw));
    Ok(Answer { envelope: Some(envelope), ..Answer::default() })
}

fn merge(live: Object, patch: &Value) -> Result<Answer, String> {
    let message = message_of(&live)?;
    let merged = strategic::apply(live, patch, Types::built_in(), message);
    merged
        .map(|object| Answer { object: Some(object), ..Answer::default() })
        .map_err(|why| format!("{why:?}"))
}

pub fn message_of(object: &Object) -> Result<MessageId, String> {
    let (api_version, kind) = claims(object);
    Types::built_in().kind(api_version, kind).ok_or_else(|| format!("no kind {kind} in {api_version}"))
}

pub fn claims(object: &Object) -> (&str, &str) {
    let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or_default();
    (text("apiVersion"), text("kind"))
}

fn text(error: impl ToString) -> String {
    error.to_string()
}
