//! The questions, and the functions that answer them.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rowplane::codec::protobuf::{self, Envelope};
use rowplane::patch::strategic;
use rowplane::schema::builtin;
use rowplane::schema::kind::Kind;
use rowplane::schema::names::Gvk;
use rowplane::tree::{Map, Value};
use serde::{Deserialize, Serialize};

use crate::apply::{Apply, Update};

pub type Object = Map;

#[derive(Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case")]
pub enum Question {
    /// Asks for the JSON of an envelope.
    Decode {
        envelope: String,
    },
    /// Asks for the envelope of a JSON object.
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
    let kind = known(envelope.gvk().map_err(text)?)?;
    let members = protobuf::decode(&kind, envelope.raw).map_err(text)?;
    let object = kind.gvk.claims().into_iter().chain(members).collect();
    Ok(Answer { object: Some(object), ..Answer::default() })
}

fn encode(object: &Object) -> Result<Answer, String> {
    let kind = kind_of(object)?;
    let raw = protobuf::encode(&kind, object).map_err(text)?;
    let envelope = STANDARD.encode(Envelope::wrap(&kind.gvk, &raw));
    Ok(Answer { envelope: Some(envelope), ..Answer::default() })
}

fn merge(live: Object, patch: &Value) -> Result<Answer, String> {
    let kind = kind_of(&live)?;
    let merged = strategic::apply(live, patch, kind.go().ok_or("no message")?);
    merged
        .map(|object| Answer { object: Some(object), ..Answer::default() })
        .map_err(|why| format!("{why:?}"))
}

pub fn kind_of(object: &Object) -> Result<Kind, String> {
    known(Gvk::of(object).map_err(text)?)
}

fn known(gvk: Gvk) -> Result<Kind, String> {
    builtin::kind(&gvk).ok_or_else(|| format!("no kind {gvk}"))
}

fn text(error: impl ToString) -> String {
    error.to_string()
}
