// MLflow's client prints links to pages of MLflow: /mlflow/#/experiments/4/runs/KEY. They lead to the run, or to the runs of the experiment.
const [, experiment, key] = /^#\/experiments\/(\d+)(?:\/runs\/([0-9a-f]{32}))?$/.exec(location.hash) ?? [];
const table = document.getElementById("mlflow-runs").href;
location.replace(key ? `/mlflow/runs/${key}` : experiment ? `${table}?experiment=${experiment}` : table);
