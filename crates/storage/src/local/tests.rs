use super::*;
use std::os::unix::fs::symlink;

fn folder(name: &str) -> Listed {
    Listed { name: name.into(), kind: ListedKind::Folder }
}

#[test]
fn a_truncated_file_is_damaged() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("b");
    fs::write(&path, b"0123456789").unwrap();
    let (storage, key) = (LocalStorage::new(), StoreKey::from(&path));
    assert_eq!(storage.length(&key).unwrap(), 10);
    fs::File::options().write(true).open(&path).unwrap().set_len(5).unwrap();
    let error = storage.read_at(&key, 2, &mut [0; 6]).unwrap_err();
    assert!(matches!(error, Error::Damaged { .. }), "{error}");
}

#[test]
fn a_file_that_was_short_is_read_once_it_is_whole() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("b");
    let (storage, key) = (LocalStorage::new(), StoreKey::from(&path));
    let read = || {
        let (mut two, mut one) = ([0; 2], [0; 1]);
        let mut ranges = [ReadRange { offset: 7, into: &mut two }, ReadRange { offset: 1, into: &mut one }];
        let both = storage.read_ranges(&key, &mut ranges);
        both.and_then(|()| storage.read_at(&key, 8, &mut [0])).map(|()| [two[0], two[1], one[0]])
    };
    fs::write(&path, b"01234").unwrap();
    assert_eq!(storage.read_from(&key, 3, 99).unwrap(), (b"34".to_vec(), 5));
    assert!(matches!(read(), Err(Error::Damaged { .. })));
    fs::write(&path, b"0123456789").unwrap();
    assert_eq!(read().unwrap(), *b"781");
    // Another file of the same name, as rsync leaves it.
    fs::write(&path, b"01234").unwrap();
    assert!(read().is_err() && storage.length(&key).unwrap() == 5);
    fs::write(root.path().join("new"), b"abcdefghij").unwrap();
    fs::rename(root.path().join("new"), &path).unwrap();
    assert_eq!(read().unwrap(), *b"hib");
    assert_eq!(storage.length(&key).unwrap(), 10);
    // Reading a whole file uses its present length.
    fs::write(&path, b"0123456789ab").unwrap();
    assert_eq!(storage.read(&key, 99).unwrap().len(), 12);
    storage.forget(&key);
    assert_eq!(storage.read_from(&key, 10, 99).unwrap(), (b"ab".to_vec(), 12));
}

#[test]
fn a_folder_is_absent_only_if_the_folder_around_it_does_not_list_it() {
    let root = tempfile::tempdir().unwrap();
    fs::create_dir_all(root.path().join("a/b")).unwrap();
    fs::write(root.path().join("file"), []).unwrap();
    let storage = LocalStorage::new();
    let gone = || io::Error::from_raw_os_error(libc::ENOENT);
    let absence = |path: &str| storage.check_absence(&root.path().join(path), gone());
    assert!(absence("a").is_err() && absence("a/b").is_err());
    assert!(absence("none").is_ok() && absence("none/b").is_ok() && absence("file").is_ok());
    assert!(storage.is_listed(&root.path().join("a/b")).unwrap());
    assert!(!storage.is_listed(&root.path().join("a/none")).unwrap());
}

#[test]
fn special_files_are_refused_without_blocking() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let key = |name: &str| StoreKey::from(at(name));
    rustix::fs::mknodat(
        rustix::fs::CWD,
        at("fifo"),
        FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o644),
        rustix::fs::makedev(0, 0),
    )
    .unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
    symlink("/dev/null", at("device")).unwrap();
    symlink("/dev/tty", at("terminal")).unwrap();
    fs::create_dir(at("folder")).unwrap();
    let storage = LocalStorage::new();
    for (name, what) in [("fifo", "FIFO"), ("socket", "socket"), ("device", "device"), ("folder", "a folder")] {
        for error in [storage.length(&key(name)).err(), storage.read_end(&key(name), 9).err()] {
            let error = error.unwrap();
            assert!(matches!(error, Error::Damaged { .. }), "{error}");
            let text = error.to_string();
            assert!(text.contains(what) && text.contains(&format!("/{name})")), "{text}");
        }
    }
    assert!(storage.length(&key("terminal")).is_err());
}

#[test]
fn dangling_links_are_errors() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    symlink(at("none"), at("other")).unwrap();
    assert!(!storage_lists(&folder.path().join("")).unwrap()[0].is_folder());
    let error = storage_lists(&at("other")).unwrap_err().to_string();
    assert!(error.contains("leads nowhere"), "{error}");
    symlink(at("none"), at("__commits")).unwrap();
    let error = storage_lists(folder.path()).unwrap_err().to_string();
    assert!(error.contains("__commits"), "{error}");
    // A link cycle exists, but cannot be resolved.
    fs::remove_file(at("__commits")).unwrap();
    symlink(at("circle"), at("circle")).unwrap();
    let listed = storage_lists(folder.path()).unwrap();
    assert_eq!(listed[0], self::folder("circle"));
    assert!(storage_lists(&at("circle")).is_err());
}

fn storage_lists(folder: &Path) -> Result<Vec<Listed>> {
    LocalStorage::new().list(&folder.into())
}

#[test]
fn cached_files_are_closed_when_descriptors_run_out() {
    let folder = tempfile::tempdir().unwrap();
    let storage = LocalStorage::new();
    for number in 0..10 {
        fs::write(folder.path().join(number.to_string()), b"x").unwrap();
        storage.length(&folder.path().join(number.to_string()).into()).unwrap();
    }
    let attempts = std::cell::Cell::new(0);
    let kept = storage.with_free_descriptors(|| {
        attempts.set(attempts.get() + 1);
        let kept = storage.lock().len();
        if kept > 0 { Err(io::Error::from_raw_os_error(libc::EMFILE)) } else { Ok(kept) }
    });
    assert_eq!((kept.unwrap(), attempts.get()), (0, 2));
    let never = storage.with_free_descriptors(|| Err::<(), _>(io::Error::from_raw_os_error(libc::ENFILE)));
    assert_eq!(never.unwrap_err().raw_os_error(), Some(libc::ENFILE));
    let once = storage.with_free_descriptors(|| Err::<(), _>(io::Error::from_raw_os_error(libc::EACCES)));
    assert_eq!(once.unwrap_err().raw_os_error(), Some(libc::EACCES));
}
