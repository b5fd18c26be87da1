//! Buckets, alone and beside local folders, pass the tests that every storage passes.

use tilefs_cloud::{AnyStorage, ObjectStorage};
use tilefs_storage::{LocalStorage, StoreKey, testing};

use super::cloud_options;
use super::servers::{S3, escaped};

#[test]
fn buckets_conform() {
    let Some(server) = S3::get() else { return };
    server.make_bucket("conforming");
    for (path, bytes) in testing::objects() {
        let path: Vec<String> = path.split('/').map(escaped).collect();
        server.put(&format!("conforming/in a folder/{}", path.join("/")).replace(' ', "%20"), &bytes);
    }
    server.put("conforming/in%20a%20folder2/other", b"no part of the folder");
    let root = StoreKey::from("s3://conforming/in a folder");
    let mut cloud = cloud_options(&server.url());
    testing::check(&ObjectStorage::new(cloud.clone()).unwrap(), &root);
    testing::check(&AnyStorage::new(LocalStorage::new(), cloud.clone()), &root);
    let folder = tempfile::tempdir().unwrap();
    cloud.disk_cache = Some((folder.path().join("cache"), 1 << 30));
    for _ in ["from the bucket", "from the disk cache"] {
        testing::check_cached(&ObjectStorage::new(cloud.clone()).unwrap(), &root);
    }
}

#[test]
fn local_folders_beside_buckets_conform() {
    let folder = tempfile::tempdir().unwrap();
    for (path, bytes) in testing::objects() {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }
    let cloud = cloud_options("http://127.0.0.1:1");
    testing::check(&AnyStorage::new(LocalStorage::new(), cloud), &folder.path().into());
}
