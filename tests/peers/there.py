"""What happens in the environment of another library: fit, export, and confirm.

    python there.py fit LIBRARY FOLDER EXPORTER      models, test rows and what they predict
    python there.py confirm LIBRARY FOLDER           labels of the counterfactuals that came back

Runs on the Python of that environment, with nothing of counterlvq but the exporter.
"""

import os
import pickle
import subprocess
import sys
import types
import warnings

import numpy as np

warnings.simplefilter("ignore")


def data(name):
    """Return standardised training and test rows, and labels that are text."""
    from sklearn import datasets
    from sklearn.decomposition import PCA
    from sklearn.model_selection import KFold
    from sklearn.preprocessing import StandardScaler

    bunch = datasets.load_iris() if name == "iris" else datasets.load_breast_cancer()
    labels = np.array([str(label) for label in bunch.target_names])[bunch.target]
    train, test = next(KFold(4, shuffle=True, random_state=0).split(bunch.data))
    scaler = StandardScaler().fit(bunch.data[train])
    X, X_test = scaler.transform(bunch.data[train]), scaler.transform(bunch.data[test])
    if name == "cancer":
        pca = PCA(5, random_state=0).fit(X)
        X, X_test = pca.transform(X), pca.transform(X_test)
    return X, labels[train], X_test


def sklearn_lvq_models():
    import sklearn_lvq as lib

    quick = {"prototypes_per_class": 2, "random_state": 0, "max_iter": 50}
    # The soft models crawl; where their prototypes end up does not matter here.
    soft = {"prototypes_per_class": 2, "random_state": 0, "max_iter": 3}
    for name in ("iris", "cancer"):
        yield name, "glvq", lib.GlvqModel(**quick)
        yield name, "grlvq", lib.GrlvqModel(**quick)
        yield name, "gmlvq", lib.GmlvqModel(**quick)
        yield name, "gmlvq-rank2", lib.GmlvqModel(initialdim=2, **quick)
        yield name, "grmlvq", lib.GrmlvqModel(**quick)
        yield name, "lgmlvq", lib.LgmlvqModel(**quick)
        yield name, "lgmlvq-class", lib.LgmlvqModel(classwise=True, **quick)
        yield name, "rslvq", lib.RslvqModel(**soft)
    yield "iris", "mrslvq", lib.MrslvqModel(**soft)
    yield "iris", "lmrslvq", lib.LmrslvqModel(**soft)


def sklvq_models():
    import sklvq as lib

    for name in ("iris", "cancer"):
        yield name, "glvq", lib.GLVQ(random_state=0, prototype_n_per_class=2)
        yield name, "glvq-root", lib.GLVQ(random_state=0, distance_type="euclidean")
        yield name, "glvq-gaps", lib.GLVQ(random_state=0, force_all_finite="allow-nan")
        yield name, "gmlvq", lib.GMLVQ(random_state=0)
        yield name, "gmlvq-rank2", lib.GMLVQ(random_state=0, relevance_n_components=2)
        yield name, "lgmlvq", lib.LGMLVQ(random_state=0, relevance_localization="prototypes")
        yield name, "lgmlvq-class", lib.LGMLVQ(random_state=0, relevance_localization="class")


class StandIn(types.ModuleType):
    """Has whatever is asked for, and does nothing."""

    __path__ = ()

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return StandIn(f"{self.__name__}.{name}")


def let_prototorch_import():
    """Put something in the place of a torchvision that does not go with the torch at hand.

    The torchvision of the package index is built for graphics cards, and does not load beside a
    torch for processors alone. prototorch and torchmetrics import it for pictures and for data
    sets that they download; no model that is fitted here asks it for anything.
    """
    try:
        import torchvision  # noqa: F401
    except (ImportError, RuntimeError):
        for name in [name for name in sys.modules if name.split(".")[0] == "torchvision"]:
            del sys.modules[name]
        names = ("", ".utils", ".datasets", ".datasets.utils", ".transforms", ".models", ".ops")
        for name in names:
            sys.modules[f"torchvision{name}"] = StandIn(f"torchvision{name}")


def prototorch_models():
    let_prototorch_import()
    import prototorch as pt
    from prototorch import models as lib

    for name in ("iris", "cancer"):
        X, y, _ = data(name)
        classes, numbers = np.unique(y, return_inverse=True)
        shape = {"input_dim": X.shape[1], "latent_dim": 2}
        dataset = tensors(X, numbers)
        for kind in KINDS:
            hparams = {"distribution": {"num_classes": len(classes), "per_class": 2}, **shape}
            start = pt.initializers.SMCI(dataset, noise=0.3)
            yield name, kind.lower(), getattr(lib, kind)(hparams, prototypes_initializer=start)


KINDS = ("GLVQ", "GRLVQ", "GMLVQ", "SiameseGMLVQ", "LGMLVQ", "GTLVQ", "CELVQ", "LVQ21")


def tensors(X, numbers):
    import torch

    return torch.utils.data.TensorDataset(
        torch.tensor(X, dtype=torch.float32), torch.tensor(numbers)
    )


def train_with_lightning(model, X, y):
    import logging

    import pytorch_lightning as pl
    import torch

    logging.getLogger("pytorch_lightning").setLevel(logging.ERROR)
    torch.manual_seed(0)
    numbers = np.unique(y, return_inverse=True)[1]
    loader = torch.utils.data.DataLoader(tensors(X, numbers), batch_size=64)
    quiet = {"logger": False, "enable_progress_bar": False, "enable_checkpointing": False}
    trainer = pl.Trainer(max_epochs=5, accelerator="cpu", enable_model_summary=False, **quiet)
    trainer.fit(model, loader)
    model.trainer = None
    model.eval()


LIBRARIES = {
    "sklearn-lvq": sklearn_lvq_models,
    "sklvq": sklvq_models,
    "prototorch": prototorch_models,
}


def predict(library, model, X):
    if library != "prototorch":
        # Row by row: the RSLVQ family cuts text to the length of the first label in its answer.
        return np.concatenate([model.predict(X[i : i + 1]) for i in range(len(X))])
    import torch

    return model.predict(torch.tensor(X, dtype=torch.float32)).numpy()


def fit(library, folder, exporter):
    for dataset, kind, model in LIBRARIES[library]():
        X, y, X_test = data(dataset)
        if library == "prototorch":
            train_with_lightning(model, X, y)
        else:
            model.fit(X, y)
        place = os.path.join(folder, f"{dataset}-{kind}")
        np.save(place + ".rows.npy", X_test)
        np.save(place + ".told.npy", predict(library, model, X_test))
        store(library, model, place)
        export(library, model, place, exporter)


def store(library, model, place):
    with open(place + ".pkl", "wb") as file:
        if library == "prototorch":
            import torch

            torch.save(model, file)
        else:
            pickle.dump(model, file)


def export(library, model, place, exporter):
    if library == "prototorch":  # by the function, from the model at hand
        sys.path.insert(0, os.path.dirname(exporter))
        from export_lvq import export as write

        write(model, place + ".npz", probe=np.load(place + ".rows.npy"))
        return
    files = [place + ".pkl", place + ".npz", "--probe", place + ".rows.npy"]
    subprocess.run([sys.executable, exporter] + files, check=True)


def load(library, place):
    with open(place + ".pkl", "rb") as file:
        if library == "prototorch":
            let_prototorch_import()
            import torch

            return torch.load(file, weights_only=False)
        return pickle.load(file)


def confirm(library, folder):
    for name in sorted(os.listdir(folder)):
        if name.endswith(".wanted.npy"):
            place = os.path.join(folder, name[: -len(".wanted.npy")])
            found = predict(library, load(library, place), np.load(place + ".wanted.npy"))
            np.save(place + ".confirmed.npy", found)


if __name__ == "__main__":
    if sys.argv[1] == "fit":
        fit(*sys.argv[2:])
    else:
        confirm(*sys.argv[2:])
