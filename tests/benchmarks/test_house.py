"""The counts of the source, on rooms of a few files that are counted by hand."""

from pathlib import Path

from benchmarks.house import Room, room_of

BLOCK = "\n".join(f"value_{number} = {number}" for number in range(6))


def room(root: Path, **files: str) -> Room:
    for name, text in files.items():
        file = root / "room" / f"{name.replace('__', '/')}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return room_of(root, "room")


def test_files_lines_folders_and_functions_are_counted(tmp_path: Path) -> None:
    found = room(tmp_path, a="def f():\n    return 1\n", b="x = 1\n", inner__c="\n\n\n\n")
    assert (found.files, found.lines, found.fullest_folder) == (3, 7, 2)
    assert (found.longest_file, found.longest_function) == (4, 2)


def test_floors_rise_with_each_import_and_a_circle_shares_one(tmp_path: Path) -> None:
    files = {"a": "x = 1", "b": "from warpladder.room import a", "c": "def f():\n    import room.b"}
    assert (room(tmp_path, **files).floors, room(tmp_path, **files).circles) == (3, 0)
    found = room(tmp_path, **{**files, "b": "from room import a, c"})
    assert (found.floors, found.circles) == (2, 1)


def test_a_circle_through_the_face_is_seen(tmp_path: Path) -> None:
    for name, text in {
        "warpladder/__init__": "from warpladder.recording import record",
        "warpladder/recording": "from warpladder.room import a",
        "room/a": "def f():\n    from warpladder import record",
    }.items():
        file = tmp_path / f"{name}.py"
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
    (tmp_path / "warpladder" / "room").symlink_to("../room")
    assert (room_of(tmp_path, "room").circles, room_of(tmp_path, "warpladder").files) == (0, 2)
    assert room_of(tmp_path, "room", "warpladder").circles == 1


def test_a_block_in_two_places_is_repeated_and_one_of_fewer_lines_is_not(tmp_path: Path) -> None:
    assert room(tmp_path, a=BLOCK, b=f"# said again\n\n{BLOCK}\nmore = 1\n").repeated_lines == 12
    assert room(tmp_path, b=BLOCK.replace("value_5", "other")).repeated_lines == 0
