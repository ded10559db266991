# shellcheck shell=bash
# Environments, the Pythons and pinned releases for them, and commands of the README; sourced by `run`
# and `release`.
export OMP_NUM_THREADS=1 MPLBACKEND=Agg PIP_DISABLE_PIP_VERSION_CHECK=1 # two workers share two cores

# Else each of the many processes compiles all modules of torch, shap and others that it imports.
unset PYTHONDONTWRITEBYTECODE

# Get uv, which unpacks a package once for all environments. It does not read pip's settings.
install_uv() {
    if [ ! -x .venv-uv/bin/uv ]; then
        python3 -m venv .venv-uv
        .venv-uv/bin/pip install --quiet uv
    fi
    UV_FIND_LINKS=${UV_FIND_LINKS-$(.venv-uv/bin/pip config get global.find-links 2> /dev/null || true)}
    export UV_FIND_LINKS
}

# Make the environment $1 anew, on the Python $2, with pip, which tests call.
make_environment() { .venv-uv/bin/uv venv --quiet --seed --clear --python "$2" "$1"; }

# Install into the environment $1 what the further arguments say.
install() { .venv-uv/bin/uv pip install --quiet --python "$1/bin/python" "${@:2}"; }

# Print a Python of version $1 that runs: a version manager's shim may stand for one that is not
# switched on.
python_of() {
    local candidate
    for candidate in "python$1" ~/.pyenv/versions/"$1"*/bin/python; do
        if "$candidate" -c "" 2>/dev/null; then echo "$candidate" && return; fi
    done
}

# Print the file of pinned releases for Python $1.
constraints_of() {
    case $1 in
        3.11) echo constraints.txt ;;
        *) echo .ci/constraints-newest-shap.txt ;;
    esac
}

# Print the command that follows the marker $1 in the README.
readme_command() {
    awk -v marker="<!-- $1 -->" '
        index($0, marker) { wanted = 1; next }
        wanted && /^```/ { if (inside) exit; inside = 1; next }
        inside { print }
    ' README.md
}
