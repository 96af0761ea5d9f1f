use super::request_path::ResourcePath;
use crate::auth::authorizer::Attributes;
use crate::user::User;
#[derive(Debug)]
pub struct RequestInfo;
impl RequestInfo {
    pub fn verb(&self) -> &str {
        ""
    }
    pub fn resource(&self) -> Option<&ResourcePath> {
        None
    }
    pub fn attributes<'a>(&'a self, user: &'a User) -> Attributes<'a> {
        Attributes::of_path(user, "", "")
    }
}
