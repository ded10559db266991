# Where the Pythons are, the releases pinned for each, and commands of the README; sourced by `run` and
# `release`.

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
        *) echo requirements-newest-shap.txt ;;
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
