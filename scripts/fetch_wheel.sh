# shellcheck shell=sh
# Included by scripts that take something out of a wheel of PyPI.

# Downloads one wheel, checks its sum and unpacks it into FOLDER/NAME. Says why and returns 1 if it cannot.
fetch_wheel() {  # FOLDER NAME VERSION SHA256 [pip's platform options]
  wheel_folder=$1 wheel_name=$2 wheel_version=$3 wheel_sum=$4
  shift 4
  if ! python3 -m pip --version > /dev/null 2>&1; then
    echo "setup: fetching $wheel_name needs python3 with pip" >&2
    return 1
  fi
  mkdir -p "$wheel_folder"
  echo "setup: fetching $wheel_name $wheel_version"
  if ! python3 -m pip download -q --no-deps --only-binary :all: "$@" -d "$wheel_folder" \
    "$wheel_name==$wheel_version" 2> "$wheel_folder/log"; then
    echo "setup: $wheel_name could not be fetched ($(tail -1 "$wheel_folder/log"))" >&2
    return 1
  fi
  wheel_file=$(ls "$wheel_folder/$(echo "$wheel_name" | tr - _)"-*.whl)
  if [ "$(sha256sum "$wheel_file" | cut -d' ' -f1)" != "$wheel_sum" ]; then
    echo "setup: the fetched $wheel_name has a wrong checksum and is not used" >&2
    return 1
  fi
  python3 -m zipfile -e "$wheel_file" "$wheel_folder/$wheel_name"
}
