"""Cards that peers compile for, as XLA's own xla/backends/gpu/target_config/specs/*.txtpb list them."""

CARDS = {
    "v100": dict(device="v100-sxm2", name="Tesla V100-SXM2-16GB", cc=(7, 0), sms=80, fpus=64, shared=98304, opt_in=98304,
                 bandwidth=898048000000, l2=6291456, ghz=1.53, memory=16935682048),
    "a100": dict(device="a100-sxm-40", name="NVIDIA A100-SXM4-40GB", cc=(8, 0), sms=108, fpus=64, shared=167936, opt_in=166912,
                 bandwidth=1555200000000, l2=41943040, ghz=1.41, memory=42331013120),
    "h100": dict(device="h100-sxm", name="NVIDIA H100 80GB HBM3", cc=(9, 0), sms=132, fpus=128, shared=233472, opt_in=232448,
                 bandwidth=3352320000000, l2=52428800, ghz=1.98, memory=84942979072),
    "b200": dict(device="b200", name="NVIDIA B200", cc=(10, 0), sms=148, fpus=128, shared=233472, opt_in=232448,
                 bandwidth=7672320000000, l2=132644864, ghz=1.965, memory=191514411008),
}


def xla_target(card):
    """The text of a GpuTargetConfigProto."""
    c = CARDS[card]
    features = "    feature_extension: ACCELERATED_FEATURES\n" if c["cc"][0] >= 9 else ""
    minor = f"    minor: {c['cc'][1]}\n" if c["cc"][1] else ""
    return f"""gpu_device_info {{
  threads_per_block_limit: 1024
  threads_per_warp: 32
  shared_memory_per_block: 49152
  shared_memory_per_core: {c['shared']}
  threads_per_core_limit: 2048
  core_count: {c['sms']}
  fpus_per_core: {c['fpus']}
  block_dim_limit_x: 2147483647
  block_dim_limit_y: 65535
  block_dim_limit_z: 65535
  memory_bandwidth: {c['bandwidth']}
  l2_cache_size: {c['l2']}
  clock_rate_ghz: {c['ghz']}
  device_memory_size: {c['memory']}
  shared_memory_per_block_optin: {c['opt_in']}
  cuda_compute_capability {{
    major: {c['cc'][0]}
{minor}{features}  }}
  registers_per_core_limit: 65536
  registers_per_block_limit: 65536
}}
platform_name: "CUDA"
dnn_version_info {{
  major: 9
  minor: 10
}}
runtime_version {{
  major: 12
  minor: 8
}}
device_description_str: "{c['name']}"
"""
