//! The results of sessions with containers, as clients read them in the channel for errors.

use crate::tree::{Value, json};

/// The result of a session: its status, and the code under which it is counted.
pub struct Outcome {
    pub status: Value,
    pub code: u16,
}

impl Outcome {
    pub fn failure(why: &str) -> Self {
        let message = format!("Internal error occurred: {why}");
        let status = json!({"metadata": {}, "status": "Failure", "message": message, "reason": "InternalError",
            "details": {"causes": [{"message": why}]}, "code": 500});
        Self { status, code: 500 }
    }

    /// The outcome that the kubelet has sent in the error stream at the end.
    pub fn of(error: &[u8]) -> Self {
        let success = || Self { status: json!({"metadata": {}, "status": "Success"}), code: 200 };
        if error.is_empty() {
            return success();
        }
        let wrong = |why: &str| Self::failure(&format!("error stream protocol error: {why}"));
        let told = match serde_json::from_slice::<Value>(error) {
            Ok(told) => told,
            Err(why) => {
                return wrong(&format!("{why} in {}", crate::gotext::quote(&String::from_utf8_lossy(error))));
            }
        };
        match told["status"].as_str() {
            Some("Success") => success(),
            Some("Failure") if told["reason"] == "NonZeroExitCode" => {
                let causes = told["details"]["causes"].as_array().map(Vec::as_slice).unwrap_or_default();
                let Some(cause) = causes.iter().find(|cause| cause["reason"] == "ExitCode") else {
                    return wrong("no ExitCode cause given");
                };
                let text = cause["message"].as_str().unwrap_or_default();
                let Ok(code) = text.parse::<u8>() else {
                    return wrong(&format!("invalid exit code value {}", crate::gotext::quote(text)));
                };
                let message = format!(
                    "command terminated with non-zero exit code: command terminated with exit code {code}"
                );
                let causes = json!([{"reason": "ExitCode", "message": code.to_string()}]);
                let status = json!({"metadata": {}, "status": "Failure", "message": message,
                    "reason": "NonZeroExitCode", "details": {"causes": causes}});
                Self { status, code: 200 }
            }
            Some("Failure") => Self::failure(told["message"].as_str().unwrap_or_default()),
            _ => wrong("unknown error"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_are_told_in_upstream_s_words() {
        for (error, want) in [
            ("", r#"{"metadata":{},"status":"Success"}"#),
            (r#"{"status":"Success"}"#, r#"{"metadata":{},"status":"Success"}"#),
            (
                r#"{"status":"Failure","reason":"NonZeroExitCode","details":{"causes":[{"reason":"ExitCode","message":"42"}]}}"#,
                r#"{"metadata":{},"status":"Failure","message":"command terminated with non-zero exit code: command terminated with exit code 42","reason":"NonZeroExitCode","details":{"causes":[{"reason":"ExitCode","message":"42"}]}}"#,
            ),
            (
                r#"{"status":"Failure","message":"gone"}"#,
                r#"{"metadata":{},"status":"Failure","message":"Internal error occurred: gone","reason":"InternalError","details":{"causes":[{"message":"gone"}]},"code":500}"#,
            ),
        ] {
            assert_eq!(Outcome::of(error.as_bytes()).status.to_string(), want);
        }
        for wrong in ["x", "{}", r#"{"status":"Failure","reason":"NonZeroExitCode"}"#] {
            let status = Outcome::of(wrong.as_bytes()).status;
            let text = status["message"].as_str().unwrap_or_default();
            assert!(text.starts_with("Internal error occurred: error stream protocol error: "), "{text}");
        }
    }
}
