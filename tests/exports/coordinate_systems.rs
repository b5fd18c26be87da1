//! Coordinate systems as GeoParquet has them: from the PROJJSON that is made of a well-known text, PROJ reads the same
//! system as from the text itself. What PROJJSON has no word for is not converted.

use std::fs;

use serde_json::Value;
use tilefs_export::geo::projjson_of_wkt::projjson;

use crate::tools::python;

/// Writes texts of many systems in each version of the format, with their names.
const TEXTS: &str = r#"
import json
from pyproj import CRS
from pyproj.database import query_crs_info
from pyproj.enums import PJType, WktVersion

codes = """EPSG:4326 EPSG:4269 EPSG:4267 EPSG:4258 EPSG:4231 EPSG:4979 EPSG:4978 EPSG:4807 EPSG:4275 EPSG:7844 EPSG:4171
    EPSG:32616 EPSG:32733 EPSG:3857 EPSG:3395 EPSG:2154 EPSG:27700 EPSG:3035 EPSG:2056 EPSG:2263 EPSG:2230 EPSG:3031
    EPSG:3413 EPSG:5041 EPSG:3112 EPSG:28992 EPSG:5514 EPSG:2193 EPSG:3577 EPSG:5070 EPSG:6933 EPSG:27572 EPSG:2180
    EPSG:5703 EPSG:5773 EPSG:6360 EPSG:7405 EPSG:5554 EPSG:9518 ESRI:54030 ESRI:54009 ESRI:102008""".split()
kinds = [PJType.GEOGRAPHIC_2D_CRS, PJType.GEOGRAPHIC_3D_CRS, PJType.GEOCENTRIC_CRS, PJType.PROJECTED_CRS,
         PJType.VERTICAL_CRS, PJType.COMPOUND_CRS]
for kind in kinds:
    # Every so many of those that are registered: other methods, units, axes and datums.
    known = query_crs_info("EPSG", kind)
    codes += [f"EPSG:{one.code}" for one in known[::max(1, len(known) // 60)]]
# Systems without an entry of their own.
projections = ["+proj=aea +lat_1=29.5 +lat_2=45.5 +lat_0=23 +lon_0=-96", "+proj=lcc +lat_1=33 +lat_0=33 +lon_0=10",
               "+proj=tmerc +lat_0=0 +lon_0=9 +k=0.9996 +x_0=500000 +units=us-ft", "+proj=utm +zone=33 +south",
               "+proj=merc +lat_ts=10", "+proj=stere +lat_0=90 +lat_ts=70 +lon_0=-45", "+proj=sinu +R=6371007.181",
               "+proj=laea +lat_0=52 +lon_0=10 +ellps=GRS80", "+proj=longlat +ellps=bessel +pm=paris",
               "+proj=longlat +ellps=intl +towgs84=-87,-98,-121", "+proj=ob_tran +o_proj=longlat +o_lat_p=39 +lon_0=18"]
systems = [(code, CRS(code)) for code in dict.fromkeys(codes)] + [(text, CRS(text + " +type=crs")) for text in projections]
versions = [WktVersion.WKT2_2019, WktVersion.WKT2_2015, WktVersion.WKT1_GDAL, WktVersion.WKT1_ESRI]
texts = []
for name, system in systems:
    for version in versions:
        try:
            texts.append([f"{name} {version.value}", system.to_wkt(version)])
        except Exception:
            pass  # It has no text of this version.
json.dump([one for one in texts if one[1]], open("texts.json", "w"))
"#;

/// Compares what PROJ reads from the texts and from what they were converted to; counts what was not converted.
const COMPARE: &str = r#"
import collections, json, warnings
from pyproj import CRS

warnings.simplefilter("ignore")
texts, converted = (json.load(open(name)) for name in ("texts.json", "converted.json"))
assert len(texts) == len(converted)
wrong, made, left = [], collections.Counter(), collections.Counter()
for (name, text), found in zip(texts, converted):
    version = name.rsplit(" ", 1)[1]
    if found is None:
        left[version] += 1
        continue
    made[version] += 1
    try:
        is_equal = CRS.from_wkt(text).equals(CRS.from_json(json.dumps(found)), ignore_axis_order=True)
    except Exception as error:
        is_equal = error
    if is_equal is not True:
        wrong.append((name, is_equal, text, json.dumps(found)))
print("converted", dict(made), "not converted", dict(left))
assert not wrong, f"{len(wrong)} of {sum(made.values())} differ: {[one[0] for one in wrong]}\n{wrong[::9]}"
for version, least in ("WKT2_2019", 0.8), ("WKT2_2015", 0.8), ("WKT1_GDAL", 0.5), ("WKT1_ESRI", 0.25):
    assert made[version] >= least * (made[version] + left[version]), (version, made, left)
"#;

#[test]
fn proj_reads_the_same_system_from_what_a_text_is_converted_to() {
    let folder = tempfile::tempdir().unwrap();
    if !python(folder.path(), "pyproj", TEXTS) {
        return;
    }
    let texts = fs::read_to_string(folder.path().join("texts.json")).unwrap();
    let texts: Vec<(String, String)> = serde_json::from_str(&texts).unwrap();
    assert!(texts.len() > 300, "{} texts", texts.len());
    let converted: Vec<Option<Value>> = texts.iter().map(|(_, text)| projjson(text)).collect();
    fs::write(folder.path().join("converted.json"), serde_json::to_string(&converted).unwrap()).unwrap();
    assert!(python(folder.path(), "pyproj", COMPARE));
}
