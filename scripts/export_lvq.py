"""Write a fitted LVQ model to a file of plain arrays that counterlvq can load.

Copy this one file to where the model works, even if that is an old environment: it needs
Python 3.7 and NumPy 1.17 or newer, and nothing else that the model does not need itself.

    python export_lvq.py model.pkl model.npz [--probe rows.npy]

or, with the fitted model at hand,

    from export_lvq import export
    export(model, "model.npz", probe=X_test)

and then, where counterlvq is installed,

    from counterlvq.adapters import load_exported
    model = load_exported("model.npz")

Models of sklearn-lvq, sklvq and prototorch-models are understood. With probe rows the file also
holds what the model itself predicts for them, and `load_exported` checks that it says the same.

The command loads a pickle, which can run any code: use it on files of your own only. `export`
and `load_exported` load none.
"""

import argparse
import os
import sys

import numpy as np

FORMAT = "counterlvq-prototypes"
VERSION = 1

SKLEARN_LVQ = (
    "GlvqModel",
    "GrlvqModel",
    "GmlvqModel",
    "GrmlvqModel",
    "LgmlvqModel",
    "RslvqModel",
    "MrslvqModel",
    "LmrslvqModel",
)
SKLVQ = {
    "GLVQ": ("squared-euclidean", "euclidean"),
    "GMLVQ": ("adaptive-squared-euclidean",),
    "LGMLVQ": ("local-adaptive-squared-euclidean",),
}
PLAIN = ("GLVQ", "GLVQ1", "GLVQ21", "ImageGLVQ", "LVQ1", "LVQ21", "MedianLVQ", "CELVQ", "KNN")
SIAMESE = ("SiameseGLVQ", "GRLVQ", "SiameseGMLVQ", "SiameseGTLVQ")
EUCLIDEAN = ("euclidean_distance", "squared_euclidean_distance", "euclidean_distance_v2")
PROTOTORCH = dict.fromkeys(PLAIN + SIAMESE, EUCLIDEAN)
PROTOTORCH.update(dict.fromkeys(("GMLVQ", "ImageGMLVQ"), ("omega_distance",)))
PROTOTORCH.update(dict.fromkeys(("GTLVQ", "ImageGTLVQ"), ("ltangent_distance",)))
PROTOTORCH["LGMLVQ"] = ("lomega_distance",)
# In these something else than the nearest prototype decides; they extend classes in which it does.
OTHER_RULES = ("RSLVQ", "SLVQ", "PLVQ", "ProbabilisticLVQ", "LVQMLN", "CBC", "ImageCBC")


class ExportError(Exception):
    """The model cannot be exported; the text says why."""


def export(model, path, probe=None):
    """Write `model` to `path`, all of it or nothing.

    model : a fitted model of sklearn-lvq, sklvq or prototorch-models
    path : where to write; existing files are replaced
    probe : rows, optional; stored together with the labels that `model` gives them
    """
    arrays = arrays_of(model)
    if probe is not None:
        arrays["probe"] = numbers("probe", probe)
        arrays["told"] = labels_of(predicted(model, arrays["probe"]))
    write(arrays, path)


def arrays_of(model):
    """Return the arrays that describe a fitted model."""
    library, kind, read = recognised(model)
    try:
        prototypes, labels, omegas = read(model, kind)
    except AttributeError as error:
        raise ExportError(f"this {kind} is not fitted yet ({error}); fit it first.") from None
    arrays = {
        "format": np.array(FORMAT),
        "version": np.array(VERSION),
        "library": np.array(library),
        "kind": np.array(kind),
        "prototypes": numbers("prototypes", prototypes),
        "labels": labels_of(labels),
    }
    if isinstance(omegas, list):
        arrays["omegas"] = stacked(omegas)
    elif omegas is not None:
        arrays["omegas"] = numbers("omegas", omegas)
    names = getattr(model, "feature_names_in_", None)
    if names is not None:
        arrays["names"] = np.array([str(name) for name in names])
    return arrays


def recognised(model):
    libraries = (
        ("sklearn-lvq", "sklearn_lvq.", SKLEARN_LVQ, from_sklearn_lvq),
        ("sklvq", "sklvq.", SKLVQ, from_sklvq),
        (
            "prototorch-models",
            "prototorch.models.",
            tuple(PROTOTORCH) + OTHER_RULES,
            from_prototorch,
        ),
    )
    for cls in type(model).__mro__:
        for library, package, kinds, read in libraries:
            if cls.__name__ in kinds and (cls.__module__ + ".").startswith(package):
                return library, cls.__name__, read
    raise ExportError(
        f"a {type(model).__name__} (from {type(model).__module__}) cannot be exported; expected a "
        f"fitted model of sklearn-lvq ({', '.join(SKLEARN_LVQ)}), sklvq ({', '.join(SKLVQ)}) or "
        f"prototorch-models ({', '.join(PROTOTORCH)}). Of a pipeline, export the last step."
    )


def from_sklearn_lvq(model, kind):
    prototypes, labels = np.asarray(model.w_), np.asarray(model.c_w_)
    if kind in ("GlvqModel", "RslvqModel"):
        return prototypes, labels, None
    if kind == "GrlvqModel":
        if np.min(model.lambda_) < 0:
            raise ExportError("this GrlvqModel has a relevance below 0; fit it again.")
        return prototypes, labels, np.sqrt(model.lambda_)
    if kind == "GrmlvqModel":
        return prototypes, labels, np.asarray(model.omega_) * np.asarray(model.lambda_)
    if kind in ("GmlvqModel", "MrslvqModel"):
        return prototypes, labels, model.omega_
    omegas = [np.asarray(omega) for omega in model.omegas_]
    if len(omegas) != len(labels):
        classes = np.asarray(model.classes_).tolist()
        return prototypes, labels, [omegas[classes.index(label)] for label in labels.tolist()]
    if kind == "LmrslvqModel":
        # Its predict takes the matrix of the first prototype with a coordinate in common.
        omegas = [omegas[int(np.nonzero(prototypes == w)[0][0])] for w in prototypes]
    return prototypes, labels, omegas


def from_sklvq(model, kind):
    distance = model.distance_type
    if distance not in SKLVQ[kind]:
        raise ExportError(
            f"{kind} has the distance_type {distance!r}; expected "
            f"{' or '.join(map(repr, SKLVQ[kind]))}."
        )
    positions = np.asarray(model.prototypes_labels_)
    # By class, because sklvq gives a tie to the class that comes first.
    order = np.argsort(positions, kind="stable")
    prototypes = np.asarray(model.prototypes_)[order]
    labels = np.asarray(model.classes_)[positions[order]]
    if kind == "GLVQ":
        # Its distance for data with gaps squares the sum of the differences.
        gaps = model.force_all_finite == "allow-nan"
        return prototypes, labels, np.ones((1, prototypes.shape[1])) if gaps else None
    if kind == "GMLVQ":
        return prototypes, labels, model.omega_
    per_class = model.relevance_localization == "class"
    return prototypes, labels, [model.omega_[positions[k] if per_class else k] for k in order]


def from_prototorch(model, kind):
    if kind in OTHER_RULES:
        raise ExportError(
            f"{kind} of prototorch-models cannot be exported; expected one of "
            f"{', '.join(PROTOTORCH)}, in which the nearest prototype decides."
        )
    distance = getattr(model.distance_layer.fn, "__name__", "unknown")
    if distance not in PROTOTORCH[kind]:
        raise ExportError(
            f"{kind} has the distance {distance!r}; expected "
            f"{' or '.join(map(repr, PROTOTORCH[kind]))}."
        )
    if getattr(model.competition_layer, "k", 1) != 1:
        raise ExportError("this KNN lets several neighbours vote; expected k=1.")
    prototypes = tensor(model.prototypes)
    prototypes = prototypes.reshape(len(prototypes), -1)
    return prototypes, tensor(model.prototype_labels), prototorch_omegas(model, kind)


def prototorch_omegas(model, kind):
    if kind in PLAIN:
        return None
    if kind == "GRLVQ":
        return tensor(model._relevances)
    if kind in SIAMESE:
        return linear(model.backbone, kind)
    omega = tensor(model._omega)
    if kind in ("GMLVQ", "ImageGMLVQ"):
        return omega.T
    if kind == "LGMLVQ":
        return [part.T for part in omega]
    return [np.eye(len(part)) - part @ part.T for part in omega]


def linear(backbone, kind):
    name = type(backbone).__name__
    if name == "Identity":
        return None
    if name == "LinearTransform":
        return tensor(backbone.weights).T
    if name == "Linear":
        return tensor(backbone.weight)
    raise ExportError(f"{kind} has a backbone of type {name}; expected a linear one.")


def tensor(value):
    return value.detach().cpu().numpy()


def predicted(model, rows):
    try:
        if hasattr(model, "proto_layer"):
            return tensor(model.predict(model.proto_layer.components.new_tensor(rows.tolist())))
        # One by one: the RSLVQ family of sklearn-lvq cuts text to the length of the first label.
        return np.concatenate([model.predict(rows[i : i + 1]) for i in range(len(rows))])
    except Exception as error:
        raise ExportError(
            f"the model cannot predict the probe rows ({type(error).__name__}: {error}); leave "
            f"them out, or run this where the model works."
        ) from error


def numbers(name, value):
    array = np.array(value, dtype=np.float64)
    if not np.isfinite(array).all():
        raise ExportError(f"{name} holds values that are not finite.")
    return array


def labels_of(value):
    """Return labels as an array that needs no pickle to be stored."""
    array = np.asarray(value).reshape(-1)
    if array.dtype.kind == "O":
        array = np.array(array.tolist())
        if array.dtype.kind == "U" and not all(isinstance(v, str) for v in np.ravel(value)):
            raise ExportError("the labels mix text with other types; expected one type.")
    if array.dtype.kind not in "biufU":
        raise ExportError(
            f"the labels have the type {array.dtype}; expected numbers, text or truth values."
        )
    return array


def stacked(omegas):
    """Stack matrices of different rank; rows of zeros change no distance."""
    omegas = [numbers("omegas", omega) for omega in omegas]
    rank = max(len(omega) for omega in omegas)
    out = np.zeros((len(omegas), rank, omegas[0].shape[1]))
    for k, omega in enumerate(omegas):
        out[k, : len(omega)] = omega
    return out


def write(arrays, path):
    path = os.path.abspath(os.fspath(path))
    temporary = f"{path}.{os.getpid()}.part"
    try:
        with open(temporary, "wb") as file:
            np.savez_compressed(file, **arrays)
        os.replace(temporary, path)
    finally:
        if os.path.exists(temporary):
            os.unlink(temporary)


def load(path):
    """Load the user's own pickle; joblib, where there is one, reads its own files as well."""
    try:
        from joblib import load as read
    except ImportError:
        from pickle import load as read
    try:
        with open(path, "rb") as file:
            return read(file)
    except OSError:
        raise
    except Exception as error:
        raise ExportError(
            f"{path} cannot be loaded here ({type(error).__name__}: {error}); expected a pickled "
            f"model, and the library that it comes from. Run this where the model was fitted."
        ) from error


def main(arguments=None):
    parser = argparse.ArgumentParser(
        description="Write a fitted LVQ model to a file that counterlvq can load.",
        epilog="Loading a pickle can run any code: use files of your own only.",
    )
    parser.add_argument("model", help="the pickled model (pickle or joblib)")
    parser.add_argument("output", help="the .npz file to write")
    parser.add_argument("--probe", help="rows (.npy) to compare predictions on when loading")
    given = parser.parse_args(arguments)
    try:
        probe = None if given.probe is None else np.load(given.probe, allow_pickle=False)
        export(load(given.model), given.output, probe)
    except (ExportError, OSError) as error:
        print(f"export_lvq.py: {error}", file=sys.stderr)
        return 1
    print(f"wrote {given.output}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
