"""Find backends through entry points and registrations, and load them at first use; an error explains each kind of failure.

``import xpgrad`` scans nothing, and no backend is imported before it is used.
"""

from xpgrad._backends.classes import (
    class_for_array as class_for_array,
    host_backend as host_backend,
    tensor_class as tensor_class,
    when_class_is_made as when_class_is_made,
)
from xpgrad._backends.loading import (
    GROUP as GROUP,
    backend_for as backend_for,
    backend_names as backend_names,
    describe as describe,
    load_entry as load_entry,
    loaded_backends as loaded_backends,
    providers as providers,
    register_backend as register_backend,
)
from xpgrad._backends.survey import survey as survey
from xpgrad._basics.faces import public_names
from xpgrad.programs.emitters import emitter_for as emitter_for, emitter_names as emitter_names, register_emitter as register_emitter

__all__ = [
    "backend_for", "backend_names", "class_for_array", "emitter_names", "register_backend", "register_emitter", "survey", "tensor_class",
    "when_class_is_made",
]  # fmt: skip


def __dir__() -> list[str]:
    return public_names(__name__)
