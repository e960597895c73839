"""/v1/permissions."""

from msgsvc_core.api.context import Context
from msgsvc_core.api.endpoint import Router
from msgsvc_core.api.pagination import PageQuery, position_of
from msgsvc_core.kernel.errors import (
    BadRequest,
    Conflict,
    NotFound,
    PermissionHasSubscribers,
)
from msgsvc_core.subscribers.models import NamedPermission
from msgsvc_core.subscribers.permissions.models import (
    CreatePermissionBody,
    Permission,
    PermissionAnswer,
    PermissionList,
    UpdatePermissionBody,
)
from msgsvc_core.subscribers.permissions.service import Permissions

router = Router(area="subscribers")


@router.get("/v1/permissions", errors=(BadRequest,))
async def list_permissions(
    ctx: Context, query: PageQuery, permissions: Permissions
) -> PermissionList:
    """Lists the project's permissions, newest first, with how many active subscribers granted each."""
    found = await permissions.page(ctx.tx, ctx.project_id, query)
    page, following = query.cut(found, lambda one: position_of(one.created_at_ms, one.key))
    active = await permissions.count_active(ctx.tx, ctx.project_id, page)
    return PermissionList(
        data=[PermissionAnswer.of(one, active.get(one.key, 0)) for one in page],
        next_cursor=following,
    )


@router.post(
    "/v1/permissions", status=201, errors=(Conflict,), audited=lambda _: _("Permission created")
)
async def create_permission(
    ctx: Context, body: CreatePermissionBody, permissions: Permissions
) -> PermissionAnswer:
    """Creates a permission, which people grant and revoke in the messenger.

    With `default`, new subscribers have granted it from now on; existing ones have not.
    """
    permission = await permissions.create(ctx.tx, ctx.project_id, body)
    return PermissionAnswer.of(permission, 0)


@router.get("/v1/permissions/{key}", errors=(NotFound,))
async def get_permission(
    ctx: Context, key: NamedPermission, permissions: Permissions
) -> PermissionAnswer:
    """Shows one permission."""
    found = await permissions.get(ctx.tx, ctx.project_id, key)
    return await _answer(ctx, permissions, found)


@router.patch(
    "/v1/permissions/{key}",
    errors=(NotFound,),
    audited=lambda _: _("Permission changed"),
)
async def update_permission(
    ctx: Context,
    key: NamedPermission,
    body: UpdatePermissionBody,
    permissions: Permissions,
) -> PermissionAnswer:
    """Changes a permission's texts and its default; its key, and who granted it, stay."""
    updated = await permissions.update(ctx.tx, ctx.project_id, key, body)
    return await _answer(ctx, permissions, updated)


@router.delete(
    "/v1/permissions/{key}",
    status=204,
    errors=(NotFound, PermissionHasSubscribers),
    audited=lambda _: _("Permission deleted"),
)
async def delete_permission(ctx: Context, key: NamedPermission, permissions: Permissions) -> None:
    """Deletes a permission that no active subscriber granted."""
    await permissions.delete(ctx.tx, ctx.project_id, key)


async def _answer(
    ctx: Context, permissions: Permissions, permission: Permission
) -> PermissionAnswer:
    active = await permissions.count_active(ctx.tx, ctx.project_id, [permission])
    return PermissionAnswer.of(permission, active.get(permission.key, 0))
