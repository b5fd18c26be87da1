//! System calls that the standard library does not offer, for looking at mounts the way programs do.
#![allow(unsafe_code)]

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

fn c_string(path: &Path) -> CString {
    CString::new(path.as_os_str().as_bytes()).unwrap()
}

/// Reads an extended attribute into a buffer of this size; size 0 asks for its length.
pub fn getxattr(path: &Path, name: &str, size: usize) -> io::Result<(usize, Vec<u8>)> {
    let (path, name) = (c_string(path), CString::new(name).unwrap());
    let mut value = vec![0_u8; size];
    // SAFETY: both strings end in NUL and the buffer is as long as stated.
    let length = unsafe { libc::getxattr(path.as_ptr(), name.as_ptr(), value.as_mut_ptr().cast(), size) };
    let length = usize::try_from(length).map_err(|_| io::Error::last_os_error())?;
    value.truncate(length);
    Ok((length, value))
}

/// Reads the names of the extended attributes, each terminated by a NUL; size 0 asks for their length.
pub fn listxattr(path: &Path, size: usize) -> io::Result<(usize, Vec<u8>)> {
    let path = c_string(path);
    let mut names = vec![0_u8; size];
    // SAFETY: the string ends in NUL and the buffer is as long as stated.
    let length = unsafe { libc::listxattr(path.as_ptr(), names.as_mut_ptr().cast(), size) };
    let length = usize::try_from(length).map_err(|_| io::Error::last_os_error())?;
    names.truncate(length);
    Ok((length, names))
}

/// Returns what the file system reports about itself.
pub fn statvfs(path: &Path) -> libc::statvfs {
    let path = c_string(path);
    // SAFETY: all-zero bytes are a valid statvfs.
    let mut answer = unsafe { std::mem::zeroed() };
    // SAFETY: the string ends in NUL and the answer is a place to write to.
    assert_eq!(unsafe { libc::statvfs(path.as_ptr(), &raw mut answer) }, 0);
    answer
}

/// Copies bytes out of a mapping of the whole file.
pub fn read_mapped(file: &File, offset: usize, length: usize) -> Vec<u8> {
    let size = file.metadata().unwrap().len() as usize;
    assert!(offset + length <= size);
    // SAFETY: a new shared mapping of an open file, only read, and unmapped before this returns.
    unsafe {
        let start = libc::mmap(std::ptr::null_mut(), size, libc::PROT_READ, libc::MAP_SHARED, file.as_raw_fd(), 0);
        assert_ne!(start, libc::MAP_FAILED, "{}", io::Error::last_os_error());
        let bytes = std::slice::from_raw_parts(start.cast::<u8>().add(offset), length).to_vec();
        libc::munmap(start, size);
        bytes
    }
}

/// Makes the kernel drop every name of this mount that is not in use.
pub fn drop_names(mountpoint: &Path) {
    let path = c_string(mountpoint);
    let flags = libc::MS_REMOUNT | libc::MS_RDONLY | libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOATIME;
    let none = std::ptr::null();
    // SAFETY: the path ends in NUL; the kernel ignores the other strings of a remount.
    let result = unsafe { libc::mount(c"none".as_ptr(), path.as_ptr(), none, flags, none.cast()) };
    assert_eq!(result, 0, "{}", io::Error::last_os_error());
}

/// Opens a pseudoterminal: the master, and the terminal for a program.
pub fn open_terminal() -> (File, File) {
    // SAFETY: the descriptor is new, and nobody else's; the name is copied before another call can change it.
    let (master, name) = unsafe {
        let master = libc::posix_openpt(libc::O_RDWR | libc::O_NOCTTY | libc::O_CLOEXEC);
        assert!(master >= 0 && libc::grantpt(master) == 0 && libc::unlockpt(master) == 0);
        let mut name: [libc::c_char; 64] = [0; 64];
        assert_eq!(libc::ptsname_r(master, name.as_mut_ptr(), name.len()), 0);
        let name = std::ffi::CStr::from_ptr(name.as_ptr()).to_str().unwrap().to_owned();
        (std::os::fd::FromRawFd::from_raw_fd(master), name)
    };
    (master, File::options().read(true).write(true).open(name).unwrap())
}

/// Reads what programs wrote to a terminal until all of them closed it.
pub fn read_terminal(mut master: &File) -> String {
    use std::io::Read;
    let (mut drawn, mut part) = (Vec::new(), [0; 4096]);
    // The end is reported as an error.
    while let Ok(length @ 1..) = master.read(&mut part) {
        drawn.extend_from_slice(&part[..length]);
    }
    String::from_utf8(drawn).unwrap()
}

/// A call that moves bytes from one file to another in the kernel.
pub type Move = fn(&File, usize, &File, usize) -> io::Result<usize>;

/// Moves bytes in the kernel from an offset in a file to the current position of another one; returns their number.
pub fn sendfile(from: &File, offset: usize, to: &File, length: usize) -> io::Result<usize> {
    let mut offset = offset as libc::off_t;
    // SAFETY: both files are open, and the offset is a place to write to.
    let moved = unsafe { libc::sendfile(to.as_raw_fd(), from.as_raw_fd(), &raw mut offset, length) };
    usize::try_from(moved).map_err(|_| io::Error::last_os_error())
}

/// The same with the call for copies within a file system, and between some.
pub fn copy_file_range(from: &File, offset: usize, to: &File, length: usize) -> io::Result<usize> {
    let (mut offset, end) = (offset as libc::loff_t, std::ptr::null_mut());
    // SAFETY: both files are open, and the offset is a place to write to.
    let moved = unsafe { libc::copy_file_range(from.as_raw_fd(), &raw mut offset, to.as_raw_fd(), end, length, 0) };
    usize::try_from(moved).map_err(|_| io::Error::last_os_error())
}

/// The same through a pipe.
pub fn splice(from: &File, offset: usize, to: &File, length: usize) -> io::Result<usize> {
    let (out_of, into) = io::pipe()?;
    let (mut offset, here) = (offset as libc::loff_t, std::ptr::null_mut());
    // SAFETY: file and pipe are open, and the offset is a place to write to.
    let moved = unsafe { libc::splice(from.as_raw_fd(), &raw mut offset, into.as_raw_fd(), here, length, 0) };
    let moved = usize::try_from(moved).map_err(|_| io::Error::last_os_error())?;
    drop(into);
    // The pipe contains as many bytes as it accepted.
    io::copy(&mut &out_of, &mut &*to).map(|_| moved)
}

/// A file handle, as an NFS server gives them to its clients.
#[derive(Debug, Clone)]
pub struct FileHandle([u32; 2 + FileHandle::WORDS]);

impl FileHandle {
    /// The largest handle of any file system.
    const WORDS: usize = 32;

    /// Returns the handle of a file or folder.
    pub fn of(path: &Path) -> FileHandle {
        let mut handle = [0; 2 + FileHandle::WORDS];
        handle[0] = 4 * FileHandle::WORDS as u32;
        let (path, mut mount) = (c_string(path), 0_i32);
        // SAFETY: the path ends in NUL; the handle begins with the number of bytes for it, and both are places to write to.
        let result = unsafe {
            libc::syscall(
                libc::SYS_name_to_handle_at,
                libc::AT_FDCWD,
                path.as_ptr(),
                handle.as_mut_ptr(),
                &raw mut mount,
                0,
            )
        };
        assert_eq!(result, 0, "{}", io::Error::last_os_error());
        FileHandle(handle)
    }

    /// Opens it in the file system of this folder.
    pub fn open(&self, mount: &File) -> io::Result<File> {
        let flags = libc::O_RDONLY | libc::O_CLOEXEC;
        // SAFETY: the handle was filled by the kernel.
        let opened = unsafe { libc::syscall(libc::SYS_open_by_handle_at, mount.as_raw_fd(), self.0.as_ptr(), flags) };
        if opened < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel has just made this descriptor, so nobody else owns it.
        Ok(unsafe { std::os::fd::FromRawFd::from_raw_fd(opened as libc::c_int) })
    }
}
