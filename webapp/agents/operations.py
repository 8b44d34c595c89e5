"""The tools, and the operation of the API that each of them is."""

ABOUT_HERE = {
    "who_am_i": ("GET", "/me"),
    "needs": ("GET", "/needs"),
    "costs": ("GET", "/costs"),
    "lineage": ("GET", "/lineage/{what}/{what_id}"),
}
DATA = {
    "list_datasets": ("GET", "/datasets"),
    "get_dataset": ("GET", "/datasets/{dataset_id}"),
    "dataset_versions": ("GET", "/datasets/{dataset_id}/versions"),
    "dataset_examples": ("GET", "/datasets/{dataset_id}/versions/{number}/examples"),
    "dataset_fit": ("GET", "/recipes/fit"),
    "dataset_formats": ("GET", "/datasets/formats"),
    "import_dataset": ("POST", "/datasets/import"),
    "get_import": ("GET", "/imports/{job_id}"),
    "cancel_import": ("POST", "/imports/{job_id}/cancel"),
}
RUNS = {
    "list_runs": ("GET", "/runs"),
    "find_runs": ("GET", "/runs/table"),
    "get_run": ("GET", "/runs/{run_id}"),
    "run_metric": ("GET", "/runs/{run_id}/metrics"),
    "run_curves": ("GET", "/runs/{run_id}/curves"),
    "run_rollouts": ("GET", "/runs/{run_id}/rollouts"),
    "run_log": ("GET", "/runs/{run_id}/log"),
    "run_history": ("GET", "/runs/{run_id}/history"),
    "run_alarms": ("GET", "/runs/{run_id}/alarms"),
    "run_judges": ("GET", "/runs/{run_id}/judges"),
    "run_artifacts": ("GET", "/runs/{run_id}/artifacts"),
    "compare_runs": ("GET", "/runs/compare"),
    "launch_run": ("POST", "/runs"),
    "stop_run": ("POST", "/runs/{run_id}/stop"),
    "pause_run": ("POST", "/runs/{run_id}/pause"),
    "resume_run": ("POST", "/runs/{run_id}/resume"),
    "extend_run": ("POST", "/runs/{run_id}/extend"),
    "fork_run": ("POST", "/runs/{run_id}/fork"),
    "stop_early": ("POST", "/runs/{run_id}/early"),
    "label_run": ("PATCH", "/runs/{run_id}/labels"),
    "register_checkpoint": ("POST", "/runs/{run_id}/artifacts/{artifact_id}/export"),
    "list_experiments": ("GET", "/experiments"),
    "list_recipes": ("GET", "/recipes"),
    "recipe_schema": ("GET", "/recipes/{name}/schema"),
    "recipe_metrics": ("GET", "/recipes/{name}/metrics"),
    "check_config": ("POST", "/recipes/{name}/check"),
}
SWEEPS = {
    "list_sweeps": ("GET", "/sweeps"),
    "get_sweep": ("GET", "/sweeps/{sweep_id}"),
    "sweep_trials": ("GET", "/sweeps/{sweep_id}/trials"),
    "start_sweep": ("POST", "/sweeps"),
    "stop_sweep": ("POST", "/sweeps/{sweep_id}/stop"),
    "resume_sweep": ("POST", "/sweeps/{sweep_id}/resume"),
}
PROJECTS = {
    "list_projects": ("GET", "/projects"),
    "get_project": ("GET", "/projects/{project_id}"),
    "project_progress": ("GET", "/projects/{project_id}/progress"),
    "project_agreement": ("GET", "/projects/{project_id}/agreement"),
    "project_disagreements": ("GET", "/projects/{project_id}/review"),
    "publish_answers": ("POST", "/projects/{project_id}/publish"),
}
EVALUATIONS = {
    "list_evaluations": ("GET", "/evaluations"),
    "get_evaluation": ("GET", "/evaluations/{evaluation_id}"),
    "evaluation_results": ("GET", "/evaluations/{evaluation_id}/results"),
    "evaluation_cases": ("GET", "/evaluations/{evaluation_id}/cases"),
    "evaluation_recipes": ("GET", "/evaluations/recipes"),
    "evaluation_schema": ("GET", "/evaluations/recipes/{name}/schema"),
    "start_evaluation": ("POST", "/evaluations"),
    "cancel_evaluation": ("POST", "/evaluations/{evaluation_id}/cancel"),
    "list_leaderboards": ("GET", "/leaderboards"),
    "get_leaderboard": ("GET", "/leaderboards/{benchmark}"),
}
MODELS = {
    "list_models": ("GET", "/models"),
    "get_model": ("GET", "/models/{model_id}"),
    "list_aliases": ("GET", "/models/aliases"),
    "point_alias": ("PUT", "/models/aliases/{name}"),
    "list_judges": ("GET", "/judges"),
    "get_judge": ("GET", "/judges/{judge_id}"),
    "get_job": ("GET", "/weights-jobs/{job_id}"),
}
TOOLS = ABOUT_HERE | DATA | RUNS | SWEEPS | PROJECTS | EVALUATIONS | MODELS

ONLY_READ = {"check_config"}
"""Tools that change nothing although their operation is no GET."""
END = {"stop_run", "stop_sweep", "cancel_evaluation", "cancel_import"}
"""Tools after which work is over. A client may ask its person before it calls them."""
