"""A contract of import-linter: a store is imported by its own package alone.

`protected` of import-linter does the same for one package, and would have to be written for each.
"""

from grimp import ImportGraph
from importlinter import Contract, ContractCheck, fields, output
from importlinter.application import contract_utils

#: Modules with SQL: `store`, and `search_store` beside it.
STORE = "store"


class StoreContract(Contract):
    """`ignore_imports` names imports that are still to be changed."""

    type_name = "stores"

    ignore_imports = fields.SetField(subfield=fields.ImportExpressionField(), required=False)
    unmatched_ignore_imports_alerting = fields.EnumField(
        contract_utils.AlertLevel, default=contract_utils.AlertLevel.ERROR
    )

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        removed = contract_utils.remove_ignored_imports_and_report(
            graph=graph,
            ignore_imports=self.ignore_imports,
            unmatched_alerting=self.unmatched_ignore_imports_alerting,
        )
        foreign = [
            f"{importer} -> {store}"
            for store in sorted(graph.modules)
            if store.endswith((f".{STORE}", f"_{STORE}"))
            for importer in sorted(graph.find_modules_that_directly_import(store))
            if not f"{importer}.".startswith(f"{store.rpartition('.')[0]}.")
        ]
        return ContractCheck(
            kept=not foreign,
            warnings=list(removed.warnings),
            ignored_import_count=removed.ignored_import_count,
            metadata={"foreign": foreign},
        )

    def render_broken_contract(self, check: ContractCheck) -> None:
        for each in check.metadata["foreign"]:
            output.print_error(f"- {each}: ask the service of that package instead", bold=False)
