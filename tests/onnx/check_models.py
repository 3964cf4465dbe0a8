"""Exits with 1 and says why where a model named on the command line does not pass ONNX's checker."""
import sys

import onnx

failed = False
for path in sys.argv[1:]:
    model = onnx.load(path)
    newest = max(schema.since_version for schema in onnx.defs.get_all_schemas_with_history() if schema.domain == "")
    opset = next(entry.version for entry in model.opset_import if entry.domain == "")
    if model.ir_version > onnx.IR_VERSION or opset > newest:
        print(f"{path}: skipped, this version of onnx is too old for it")
        continue
    try:
        onnx.checker.check_model(path, full_check=True)
    except Exception as error:
        failed = True
        print(f"{path}: {error}")
sys.exit(failed)
