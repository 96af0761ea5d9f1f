//! The service Auth.

use tonic::Status;

use crate::engine::Etcd;
use crate::wire::auth::{ROOT, Users, Who};
use crate::wire::exchange::Caller;
use crate::wire::messages::{
    AuthDisableRequest, AuthDisableResponse, AuthEnableRequest, AuthEnableResponse, AuthRoleAddRequest,
    AuthRoleAddResponse, AuthRoleDeleteRequest, AuthRoleDeleteResponse, AuthRoleGetRequest,
    AuthRoleGetResponse, AuthRoleGrantPermissionRequest, AuthRoleGrantPermissionResponse,
    AuthRoleListRequest, AuthRoleListResponse, AuthRoleRevokePermissionRequest,
    AuthRoleRevokePermissionResponse, AuthStatusRequest, AuthStatusResponse, AuthUserAddRequest,
    AuthUserAddResponse, AuthUserChangePasswordRequest, AuthUserChangePasswordResponse,
    AuthUserDeleteRequest, AuthUserDeleteResponse, AuthUserGetRequest, AuthUserGetResponse,
    AuthUserGrantRoleRequest, AuthUserGrantRoleResponse, AuthUserListRequest, AuthUserListResponse,
    AuthUserRevokeRoleRequest, AuthUserRevokeRoleResponse, AuthenticateRequest, AuthenticateResponse,
    Permission, PermissionType, Role, User,
};
use crate::wire::passwords;
use crate::wire::server::Server;

/// The error texts of etcd, with the codes that they have.
fn refused(text: &str) -> Status {
    let text = format!("etcdserver: {text}");
    match &text[12..] {
        "user name is empty" | "role name is empty" | "permission not given" | "invalid auth management" => {
            Status::invalid_argument(text)
        }
        _ => Status::failed_precondition(text),
    }
}

const NO_PASSWORD: &str = "etcdserver: authentication failed, invalid user ID or password";

impl Server {
    /// The user who calls; `None` where everybody may do everything.
    pub(in crate::wire) fn who(&self, etcd: &Etcd, caller: &Caller) -> Result<Option<Who>, Status> {
        self.known_users().who(etcd, caller, self.now())
    }

    /// Refuses who is not root, if users are told from each other.
    pub(in crate::wire) fn require_root(&self, etcd: &Etcd, caller: &Caller) -> Result<(), Status> {
        self.who(etcd, caller)?.map_or(Ok(()), |who| who.require_root())
    }

    /// Changes users or roles as root.
    async fn change(
        &self,
        caller: &Caller,
        change: impl FnMut(&mut Users) -> Result<(), Status>,
    ) -> Result<&Etcd, Status> {
        let etcd = self.etcd().await?;
        self.require_root(etcd, caller)?;
        self.known_users().change(etcd, change).await?;
        Ok(etcd)
    }

    pub(in crate::wire) async fn auth_enable(
        &self,
        caller: &Caller,
        _: AuthEnableRequest,
    ) -> Result<AuthEnableResponse, Status> {
        let key = self.new_key();
        let etcd = self
            .change(caller, |users| {
                let root = users.users.get(ROOT).ok_or_else(|| refused("root user does not exist"))?;
                if !root.roles.iter().any(|role| role == ROOT) {
                    return Err(refused("root user does not have root role"));
                }
                users.enable(true, &key);
                Ok(())
            })
            .await?;
        Ok(AuthEnableResponse { header: Some(etcd.newest_header()) })
    }

    pub(in crate::wire) async fn auth_disable(
        &self,
        caller: &Caller,
        _: AuthDisableRequest,
    ) -> Result<AuthDisableResponse, Status> {
        let key = self.new_key();
        let etcd = self
            .change(caller, |users| {
                users.enable(false, &key);
                Ok(())
            })
            .await?;
        Ok(AuthDisableResponse { header: Some(etcd.newest_header()) })
    }

    pub(in crate::wire) async fn auth_status(
        &self,
        caller: &Caller,
        _: AuthStatusRequest,
    ) -> Result<AuthStatusResponse, Status> {
        let etcd = self.etcd().await?;
        self.who(etcd, caller)?;
        let users = self.known_users().users(etcd);
        let (enabled, auth_revision) = (users.is_enabled(), users.revision());
        Ok(AuthStatusResponse { header: Some(etcd.newest_header()), enabled, auth_revision })
    }

    pub(in crate::wire) async fn authenticate(
        &self,
        _: &Caller,
        request: AuthenticateRequest,
    ) -> Result<AuthenticateResponse, Status> {
        let AuthenticateRequest { name, password } = request;
        let etcd = self.etcd().await?;
        let users = self.known_users().users(etcd);
        if !users.is_enabled() {
            return Err(refused("authentication is not enabled"));
        }
        let hash = users.users.get(&name).map(|user| user.password.clone()).unwrap_or_default();
        if !passwords::matches(password, hash).await? {
            return Err(Status::invalid_argument(NO_PASSWORD));
        }
        let token = users.token(&name, self.now());
        Ok(AuthenticateResponse { header: Some(etcd.newest_header()), token })
    }

    pub(in crate::wire) async fn user_add(
        &self,
        caller: &Caller,
        request: AuthUserAddRequest,
    ) -> Result<AuthUserAddResponse, Status> {
        let AuthUserAddRequest { name, password, options, hashed_password } = request;
        self.require_root(self.etcd().await?, caller)?;
        if name.is_empty() {
            return Err(refused("user name is empty"));
        }
        let options = options.unwrap_or_default();
        let password = match options.no_password {
            true => Vec::new(),
            false => passwords::hash(password, hashed_password).await?,
        };
        let etcd = self
            .change(caller, |users| {
                if users.users.contains_key(&name) {
                    return Err(refused("user name already exists"));
                }
                let user = User {
                    name: name.clone().into(),
                    password: password.clone().into(),
                    roles: Vec::new(),
                    options: Some(options.clone()),
                };
                users.users.insert(name.clone(), user);
                Ok(())
            })
            .await?;
        Ok(AuthUserAddResponse { header: Some(etcd.newest_header()) })
    }

    pub(in crate::wire) async fn user_get(
        &self,
        caller: &Caller,
        request: AuthUserGetRequest,
    ) -> Result<AuthUserGetResponse, Status> {
        let etcd = self.etcd().await?;
        if let Some(who) = self.who(etcd, caller)?.filter(|who| who.name != request.name) {
            who.require_root()?;
        }
        let users = self.known_users().users(etcd);
        let user = users.users.get(&request.name).ok_or_else(|| refused("user name not found"))?;
        Ok(AuthUserGetResponse { header: Some(etcd.newest_header()), roles: user.roles.clone() })
    }

    pub(in crate::wire) async fn user_list(
        &self,
        caller: &Caller,
        _: AuthUserListRequest,
    ) -> Result<AuthUserListResponse, Status> {
        let etcd = self.etcd().await?;
        self.require_root(etcd, caller)?;
        let users = self.known_users().users(etcd).users.keys().cloned().collect();
        Ok(AuthUserListResponse { header: Some(etcd.newest_header()), users })
    }

    pub(in crate::wire) async fn user_delete(
        &self,
        caller: &Caller,
        request: AuthUserDeleteRequest,
    ) -> Result<AuthUserDeleteResponse, Status> {
        let etcd = self
            .change(caller, |users| {
                if users.is_enabled() && request.name == ROOT {
                    return Err(refused("invalid auth management"));
                }
                users.users.remove(&request.name).map(drop).ok_or_else(|| refused("user name not found"))
            })
            .await?;
        Ok(AuthUserDeleteResponse { header: Some(etcd.newest_header()) })
    }

    pub(in crate::wire) async fn user_change_password(
        &self,
        caller: &Caller,
        request: AuthUserChangePasswordRequest,
    ) -> Result<AuthUserChangePasswordResponse, Status> {
        let AuthUserChangePasswordRequest { name, password, hashed_password } = request;
        self.require_root(self.etcd().await?, caller)?;
        let password = passwords::hash(password, hashed_password).await?;
        let etcd = self
            .change(caller, |users| {
                let user = user(users, &name)?;
                if !user.options.as_ref().is_some_and(|options| options.no_password) {
                    user.password = password.clone().into();
                }
                Ok(())
            })
            .await?;
        Ok(AuthUserChangePasswordResponse { header: Some(etcd.newest_header()) })
    }

    pub(in crate::wire) async fn user_grant_role(
        &self,
        caller: &Caller,
        request: AuthUserGrantRoleRequest,
    ) -> Result<AuthUserGrantRoleResponse, Status> {
        let AuthUserGrantRoleRequest { user: name, role } = request;
        let etcd = self
            .change(caller, |users| {
                user(users, &name)?;
                if role != ROOT && !users.roles.contains_key(&role) {
                    return Err(refused("role name not found"));
                }
                let held = &mut user(users, &name)?.roles;
                if let Err(place) = held.binary_search(&role) {
                    held.insert(place, role.clone());
                }
                Ok(())
            })
            .await?;
        Ok(AuthUserGrantRoleResponse { header: Some(etcd.newest_header()) })
    }

    pub(in crate::wire) async fn user_revoke_role(
        &self,
        caller: &Caller,
        request: AuthUserRevokeRoleRequest,
    ) -> Result<AuthUserRevokeRoleResponse, Status> {
        let AuthUserRevokeRoleRequest { name, role } = request;
        let etcd = self
            .change(caller, |users| {
                if users.is_enabled() && name == ROOT && role == ROOT {
                    return Err(refused("invalid auth management"));
                }
                let held = &mut user(users, &name)?.roles;
                let before = held.len();
                held.retain(|held| *held != role);
                match held.len() < before {
                    true => Ok(()),
                    false => Err(refused("role is not granted to the user")),
                }
            })
            .await?;
        Ok(AuthUserRevokeRoleResponse { header: Some(etcd.newest_header()) })
    }

    pub(in crate::wire) async fn role_add(
        &self,
        caller: &Caller,
        request: AuthRoleAddRequest,
    ) -> Result<AuthRoleAddResponse, Status> {
        let etcd = self
            .change(caller, |users| {
                let name = request.name.clone();
                match () {
                    () if name.is_empty() => Err(refused("role name is empty")),
                    () if users.roles.contains_key(&name) => Err(refused("role name already exists")),
                    () => {
                        let role = Role { name: name.clone().into(), key_permission: Vec::new() };
                        users.roles.insert(name, role);
                        Ok(())
                    }
                }
            })
            .await?;
        Ok(AuthRoleAddResponse { header: Some(etcd.newest_header()) })
    }

    pub(in crate::wire) async fn role_get(
        &self,
        caller: &Caller,
        request: AuthRoleGetRequest,
    ) -> Result<AuthRoleGetResponse, Status> {
        let etcd = self.etcd().await?;
        if let Some(who) = self.who(etcd, caller)?.filter(|who| !who.has_role(&request.role)) {
            who.require_root()?;
        }
        let users = self.known_users().users(etcd);
        let role = users.roles.get(&request.role).ok_or_else(|| refused("role name not found"))?;
        let everything = || Permission {
            perm_type: PermissionType::ReadWrite as i32,
            range_end: vec![0].into(),
            ..Permission::default()
        };
        let perm = if request.role == ROOT { vec![everything()] } else { role.key_permission.clone() };
        Ok(AuthRoleGetResponse { header: Some(etcd.newest_header()), perm })
    }

    pub(in crate::wire) async fn role_list(
        &self,
        caller: &Caller,
        _: AuthRoleListRequest,
    ) -> Result<AuthRoleListResponse, Status> {
        let etcd = self.etcd().await?;
        self.require_root(etcd, caller)?;
        let roles = self.known_users().users(etcd).roles.keys().cloned().collect();
        Ok(AuthRoleListResponse { header: Some(etcd.newest_header()), roles })
    }

    pub(in crate::wire) async fn role_delete(
        &self,
        caller: &Caller,
        request: AuthRoleDeleteRequest,
    ) -> Result<AuthRoleDeleteResponse, Status> {
        let etcd = self
            .change(caller, |users| {
                if users.is_enabled() && request.role == ROOT {
                    return Err(refused("invalid auth management"));
                }
                users.roles.remove(&request.role).ok_or_else(|| refused("role name not found"))?;
                for user in users.users.values_mut() {
                    user.roles.retain(|held| *held != request.role);
                }
                Ok(())
            })
            .await?;
        Ok(AuthRoleDeleteResponse { header: Some(etcd.newest_header()) })
    }

    pub(in crate::wire) async fn role_grant_permission(
        &self,
        caller: &Caller,
        request: AuthRoleGrantPermissionRequest,
    ) -> Result<AuthRoleGrantPermissionResponse, Status> {
        let granted = request.perm.ok_or_else(|| refused("permission not given"))?;
        let is_range =
            granted.range_end.is_empty() || *granted.range_end == [0] || granted.key < granted.range_end;
        if !is_range || granted.key.is_empty() && granted.range_end.is_empty() {
            return Err(refused("invalid auth management"));
        }
        let etcd = self
            .change(caller, |users| {
                let held = &mut role(users, &request.name)?.key_permission;
                held.retain(|held| (&held.key, &held.range_end) != (&granted.key, &granted.range_end));
                held.push(granted.clone());
                held.sort_by(|a, b| (&a.key, &a.range_end).cmp(&(&b.key, &b.range_end)));
                Ok(())
            })
            .await?;
        Ok(AuthRoleGrantPermissionResponse { header: Some(etcd.newest_header()) })
    }

    pub(in crate::wire) async fn role_revoke_permission(
        &self,
        caller: &Caller,
        request: AuthRoleRevokePermissionRequest,
    ) -> Result<AuthRoleRevokePermissionResponse, Status> {
        let etcd = self
            .change(caller, |users| {
                let held = &mut role(users, &request.role)?.key_permission;
                let before = held.len();
                held.retain(|held| (&held.key, &held.range_end) != (&request.key, &request.range_end));
                match held.len() < before {
                    true => Ok(()),
                    false => Err(refused("permission is not granted to the role")),
                }
            })
            .await?;
        Ok(AuthRoleRevokePermissionResponse { header: Some(etcd.newest_header()) })
    }
}

fn user<'a>(users: &'a mut Users, name: &str) -> Result<&'a mut User, Status> {
    users.users.get_mut(name).ok_or_else(|| refused("user name not found"))
}

fn role<'a>(users: &'a mut Users, name: &str) -> Result<&'a mut Role, Status> {
    users.roles.get_mut(name).ok_or_else(|| refused("role name not found"))
}
