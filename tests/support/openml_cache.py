"""Tables as scikit-learn keeps them from OpenML: what `fetch_openml` would have stored after a download."""

import gzip
import hashlib
import json


def write(home, number, columns, rows, *, target, quote="'"):
    """Put a table into `home`: columns name -> None (numbers) or its levels; rows of text, `?` where missing."""
    kinds = {
        name: "NUMERIC" if levels is None else "{" + ",".join(quote + level + quote for level in levels) + "}"
        for name, levels in columns.items()
    }
    arff = "@RELATION table\n" + "".join(f"@ATTRIBUTE '{name}' {kind}\n" for name, kind in kinds.items()) + "@DATA\n"
    arff += "".join(",".join(row) + "\n" for row in rows)
    features = [
        {
            "index": str(i),
            "name": name,
            "data_type": "numeric" if levels is None else "nominal",
            "is_target": "true" if name == target else "false",
            "is_ignore": "false",
            "is_row_identifier": "false",
            "number_of_missing_values": "0",
        }
        for i, (name, levels) in enumerate(columns.items())
    ]
    about = {
        "id": str(number),
        "name": "table",
        "version": "1",
        "description": "",
        "format": "ARFF",
        "status": "active",
        "url": f"https://www.openml.org/data/v1/download/{number}/table.arff",
        "md5_checksum": hashlib.md5(arff.encode()).hexdigest(),
    } | ({} if target is None else {"default_target_attribute": target})
    qualities = [{"name": "NumberOfInstances", "value": str(float(len(rows)))}]
    files = {
        f"api/v1/json/data/{number}": json.dumps({"data_set_description": about}),
        f"api/v1/json/data/features/{number}": json.dumps({"data_features": {"feature": features}}),
        f"api/v1/json/data/qualities/{number}": json.dumps({"data_qualities": {"quality": qualities}}),
        f"data/v1/download/{number}/table.arff": arff,
    }
    for name, text in files.items():
        path = home / "openml" / "openml.org" / f"{name}.gz"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(text.encode()))
    return path  # of the data
