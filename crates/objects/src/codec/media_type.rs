//! The encodings that clients may send and accept.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MediaType {
    Json,
    Yaml,
    Protobuf,
}

impl MediaType {
    pub fn as_str(self) -> &'static str {
        match self {
            MediaType::Json => "application/json",
            MediaType::Yaml => "application/yaml",
            MediaType::Protobuf => "application/vnd.kubernetes.protobuf",
        }
    }

    /// The Content-Type of a watch's body; YAML cannot be streamed.
    pub fn stream_content_type(self) -> Option<&'static str> {
        match self {
            MediaType::Json => Some("application/json"),
            MediaType::Yaml => None,
            MediaType::Protobuf => Some("application/vnd.kubernetes.protobuf;stream=watch"),
        }
    }

    pub fn subtype(self) -> &'static str {
        self.as_str().split_once('/').map_or("", |(_, subtype)| subtype)
    }
}
