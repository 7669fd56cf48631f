# Completion of fathom for bash. Made from cli/commands.c by make docs; do not edit.
_fathom_jobs() {
    local name dir=. i
    for ((i = 1; i < COMP_CWORD; i++)); do
        [ "${COMP_WORDS[i]}" = --dir ] || continue
        dir=${COMP_WORDS[i+1]}
        [ "$dir" = '=' ] && dir=${COMP_WORDS[i+2]}
    done
    while IFS= read -r name; do
        case $name in "$word"*) ;; *) continue ;; esac
        [[ $name == */* && $word != */* ]] && continue # stages when there is a slash
        printf -v name %q "$name"
        COMPREPLY+=("$name")
    done < <("${COMP_WORDS[0]}" status --names "$dir" 2>/dev/null)
}
_fathom_add() {
    local more=()
    case $1 in
    jobs) _fathom_jobs ;;
    stages) mapfile -t more < <(compgen -W "$stages" -- "$word") ;;
    instruments) mapfile -t more < <(compgen -W "$instruments" -- "$word") ;;
    commands) mapfile -t more < <(compgen -W "$known" -- "$word") ;;
    folders) mapfile -t more < <(compgen -d -- "$word") ;;
    files) mapfile -t more < <(compgen -f -- "$word") ;;
    esac
    case $1 in folders | files) compopt -o filenames 2>/dev/null ;; esac
    COMPREPLY+=("${more[@]}")
}
_fathom() {
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}
    local first='' second='' words='' kind='' i known="cancel config clean doctor help logs plan run report serve status version bragg focus ptycho sounding spatial splat"
    local stages="render figures index fuse stitch data solve train infer evaluate survey fit analyze preprocess eval all" instruments="bragg focus ptycho sounding spatial splat"
    COMPREPLY=()
    [ "$word" = '=' ] && word='' # --flag=value is three words here
    [ "$before" = '=' ] && before=${COMP_WORDS[COMP_CWORD-2]}
    case $before in
    --dir)
        _fathom_add folders
        return
        ;;
    --trace)
        _fathom_add files
        return
        ;;
    --config-name)
        return
        ;;
    --set)
        return
        ;;
    --path)
        _fathom_add files
        return
        ;;
    --data-root)
        _fathom_add folders
        return
        ;;
    --exp)
        return
        ;;
    --microscope)
        return
        ;;
    --bundle)
        _fathom_add files
        return
        ;;
    --memory)
        return
        ;;
    --device)
        mapfile -t COMPREPLY < <(compgen -W "auto cpu cuda" -- "$word")
        return
        ;;
    --threads)
        return
        ;;
    --monitor)
        return
        ;;
    --scratch)
        _fathom_add folders
        return
        ;;
    --log)
        mapfile -t COMPREPLY < <(compgen -W "error warn info debug" -- "$word")
        return
        ;;
    --stage)
        return
        ;;
    --lines)
        return
        ;;
    --config | -c)
        _fathom_add files
        return
        ;;
    --seed)
        return
        ;;
    --ranks)
        return
        ;;
    --over)
        return
        ;;
    --jobs | -j)
        return
        ;;
    --jobs-per-device)
        return
        ;;
    --only)
        _fathom_add jobs
        return
        ;;
    --rerun)
        _fathom_add stages
        return
        ;;
    --time-limit)
        return
        ;;
    --retries)
        return
        ;;
    --notify)
        return
        ;;
    --status)
        _fathom_add files
        return
        ;;
    --executor)
        return
        ;;
    --slurm)
        return
        ;;
    --output | -o)
        _fathom_add files
        return
        ;;
    --port)
        return
        ;;
    --bind)
        return
        ;;
    --token)
        return
        ;;
    --compat)
        return
        ;;
    --quirk)
        return
        ;;
    --precision)
        return
        ;;
    --fdump)
        _fathom_add files
        return
        ;;
    --checkpoint)
        return
        ;;
    --smv32)
        _fathom_add files
        return
        ;;
    --cbf)
        _fathom_add files
        return
        ;;
    --preview)
        _fathom_add files
        return
        ;;
    --preview-scale)
        return
        ;;
    --device-memory)
        return
        ;;
    --attempt)
        return
        ;;
    --free)
        return
        ;;
    --fix)
        return
        ;;
    --tie)
        return
        ;;
    --iterations)
        return
        ;;
    --adc)
        return
        ;;
    --gain)
        return
        ;;
    --dataset)
        return
        ;;
    --frame)
        return
        ;;
    --out)
        _fathom_add files
        return
        ;;
    --figure)
        _fathom_add files
        return
        ;;
    --dpi)
        return
        ;;
    --format)
        return
        ;;
    --method)
        return
        ;;
    --measure)
        return
        ;;
    --filter-size)
        return
        ;;
    --filter-um)
        return
        ;;
    --sigma)
        return
        ;;
    --border)
        return
        ;;
    --levels)
        return
        ;;
    --window)
        return
        ;;
    --base)
        return
        ;;
    --consistency)
        return
        ;;
    --reassign)
        return
        ;;
    --interp)
        return
        ;;
    --halo)
        return
        ;;
    --prefer)
        return
        ;;
    --low)
        return
        ;;
    --high)
        return
        ;;
    --scale)
        return
        ;;
    --polarity)
        return
        ;;
    --reject)
        return
        ;;
    --alpha)
        return
        ;;
    --corr)
        return
        ;;
    --compat-batch)
        return
        ;;
    --channel)
        return
        ;;
    --channels)
        return
        ;;
    --z-keep)
        return
        ;;
    --z-range)
        return
        ;;
    --wells)
        return
        ;;
    --times)
        return
        ;;
    --z-step)
        return
        ;;
    --um-per-px)
        return
        ;;
    --rgb-order)
        return
        ;;
    --nd2-search)
        return
        ;;
    --read-mode)
        return
        ;;
    --image-format)
        return
        ;;
    --scalebar)
        return
        ;;
    --workers)
        return
        ;;
    --raw)
        return
        ;;
    --trace-stacks)
        return
        ;;
    --layout)
        return
        ;;
    --map)
        return
        ;;
    --ref-xy)
        _fathom_add files
        return
        ;;
    --overlap)
        return
        ;;
    --blend)
        return
        ;;
    --orientation)
        return
        ;;
    --grid)
        return
        ;;
    --run-dir)
        _fathom_add files
        return
        ;;
    --planes)
        return
        ;;
    --size)
        return
        ;;
    --z)
        return
        ;;
    --height)
        return
        ;;
    --width)
        return
        ;;
    --batch)
        return
        ;;
    --iters)
        return
        ;;
    --warmup)
        return
        ;;
    --devices)
        return
        ;;
    --ngff)
        return
        ;;
    --compressor)
        return
        ;;
    --tile)
        return
        ;;
    --train_data_file)
        _fathom_add files
        return
        ;;
    --test_data_file)
        _fathom_add files
        return
        ;;
    --data.kind)
        return
        ;;
    --N)
        return
        ;;
    --nphotons)
        return
        ;;
    --gridsize)
        return
        ;;
    --positions.use)
        return
        ;;
    --positions.sign)
        return
        ;;
    --flip_x)
        return
        ;;
    --flip_y)
        return
        ;;
    --swap_xy)
        return
        ;;
    --coord_scale)
        return
        ;;
    --probe_guess)
        return
        ;;
    --subset)
        return
        ;;
    --probe_resize)
        return
        ;;
    --mask.convention)
        return
        ;;
    --energy_eV)
        return
        ;;
    --distance_m)
        return
        ;;
    --detector_pixel_m)
        return
        ;;
    --particle)
        return
        ;;
    --crop)
        return
        ;;
    --centre_x)
        return
        ;;
    --centre_y)
        return
        ;;
    --bin)
        return
        ;;
    --hdf5.data)
        return
        ;;
    --hdf5.mask)
        return
        ;;
    --hdf5.x)
        return
        ;;
    --hdf5.y)
        return
        ;;
    --hdf5.distance_m)
        return
        ;;
    --hdf5.pixel_m)
        return
        ;;
    --hdf5.energy_eV)
        return
        ;;
    --hdf5.probe)
        return
        ;;
    --positions.file)
        _fathom_add files
        return
        ;;
    --positions.unit)
        return
        ;;
    --positions.step)
        return
        ;;
    --probe_mask)
        return
        ;;
    --probe_mask_sigma)
        return
        ;;
    --probe_mask_diameter)
        return
        ;;
    --pictures)
        return
        ;;
    --algorithm)
        return
        ;;
    --object_alpha)
        return
        ;;
    --probe_alpha)
        return
        ;;
    --raar_beta)
        return
        ;;
    --dm_alpha)
        return
        ;;
    --noise_model)
        return
        ;;
    --modes)
        return
        ;;
    --probe_start)
        return
        ;;
    --position_start)
        return
        ;;
    --position_step)
        return
        ;;
    --position_limit)
        return
        ;;
    --subpixel)
        return
        ;;
    --batching)
        return
        ;;
    --object_init)
        return
        ;;
    --start_from)
        _fathom_add files
        return
        ;;
    --probe_power)
        return
        ;;
    --rescale_probe)
        return
        ;;
    --orthogonalise)
        return
        ;;
    --scale_every)
        return
        ;;
    --overlap_iterations)
        return
        ;;
    --object_inertia)
        return
        ;;
    --probe_inertia)
        return
        ;;
    --power_bound)
        return
        ;;
    --variant)
        return
        ;;
    --rng)
        return
        ;;
    --order)
        _fathom_add files
        return
        ;;
    --object_min)
        return
        ;;
    --object_max)
        return
        ;;
    --phase_min)
        return
        ;;
    --phase_max)
        return
        ;;
    --object_smooth)
        return
        ;;
    --object_tv)
        return
        ;;
    --raster_period)
        return
        ;;
    --probe_threshold)
        return
        ;;
    --probe_aperture)
        return
        ;;
    --keep_mean_position)
        return
        ;;
    --fix_probe_power)
        return
        ;;
    --momentum)
        return
        ;;
    --momentum_every)
        return
        ;;
    --object_momentum)
        return
        ;;
    --probe_momentum)
        return
        ;;
    --opr)
        return
        ;;
    --centre_probe)
        return
        ;;
    --n_groups)
        return
        ;;
    --n_subsample)
        return
        ;;
    --subsample_seed)
        return
        ;;
    --neighbor_count)
        return
        ;;
    --enable_oversampling)
        return
        ;;
    --neighbor_pool_size)
        return
        ;;
    --sequential_sampling)
        return
        ;;
    --merge)
        return
        ;;
    --merge_size)
        return
        ;;
    --offset)
        return
        ;;
    --max_position_jitter)
        return
        ;;
    --stitch_crop)
        return
        ;;
    --stitch.weight)
        return
        ;;
    --stitch.canvas)
        return
        ;;
    --stitch.patches)
        return
        ;;
    --model_type)
        return
        ;;
    --architecture)
        return
        ;;
    --n_filters_scale)
        return
        ;;
    --flavour)
        return
        ;;
    --amp_activation)
        return
        ;;
    --object_big)
        return
        ;;
    --probe_big)
        return
        ;;
    --pad_object)
        return
        ;;
    --probe_scale)
        return
        ;;
    --batch_size)
        return
        ;;
    --nepochs)
        return
        ;;
    --mae_weight)
        return
        ;;
    --nll_weight)
        return
        ;;
    --realspace_weight)
        return
        ;;
    --tv_weight)
        return
        ;;
    --realspace_mae_weight)
        return
        ;;
    --gaussian_smoothing_sigma)
        return
        ;;
    --probe_trainable)
        return
        ;;
    --intensity_scale_trainable)
        return
        ;;
    --optimizer)
        return
        ;;
    --learning_rate)
        return
        ;;
    --scheduler)
        return
        ;;
    --plateau_factor)
        return
        ;;
    --plateau_patience)
        return
        ;;
    --plateau_min_lr)
        return
        ;;
    --warmup_epochs)
        return
        ;;
    --lr_min_ratio)
        return
        ;;
    --early_stop_patience)
        return
        ;;
    --gradient_clip_val)
        return
        ;;
    --gradient_clip_algorithm)
        return
        ;;
    --keep)
        return
        ;;
    --deterministic)
        return
        ;;
    --checkpoint_every)
        return
        ;;
    --normalisation)
        return
        ;;
    --normalise)
        return
        ;;
    --model_file)
        _fathom_add files
        return
        ;;
    --truth_file)
        _fathom_add files
        return
        ;;
    --skip_registration)
        return
        ;;
    --phase_align)
        return
        ;;
    --registration_upsample)
        return
        ;;
    --evaluate_margin)
        return
        ;;
    --frc_sigma)
        return
        ;;
    --residuals)
        return
        ;;
    --halves)
        return
        ;;
    --vmin)
        return
        ;;
    --vmax)
        return
        ;;
    --show_patterns)
        return
        ;;
    --object)
        return
        ;;
    --object_file)
        _fathom_add files
        return
        ;;
    --object_scale)
        return
        ;;
    --phase)
        return
        ;;
    --probe_file)
        _fathom_add files
        return
        ;;
    --default_probe_scale)
        return
        ;;
    --probe_curvature)
        return
        ;;
    --n_images)
        return
        ;;
    --n_test_images)
        return
        ;;
    --scan)
        return
        ;;
    --buffer)
        return
        ;;
    --jitter)
        return
        ;;
    --object_seed)
        return
        ;;
    --test_object_seed)
        return
        ;;
    --noise_seed)
        return
        ;;
    --units)
        return
        ;;
    --noise)
        return
        ;;
    --output-dir)
        _fathom_add folders
        return
        ;;
    --n-train)
        return
        ;;
    --n-test)
        return
        ;;
    --nimgs-train)
        return
        ;;
    --nimgs-test)
        return
        ;;
    --doses)
        return
        ;;
    --losses)
        return
        ;;
    --algorithms)
        return
        ;;
    --n_train)
        return
        ;;
    --n_test)
        return
        ;;
    --skip_training)
        return
        ;;
    --grid_mode)
        return
        ;;
    --nimgs_train)
        return
        ;;
    --nimgs_test)
        return
        ;;
    --interpolation)
        return
        ;;
    --replay)
        _fathom_add files
        return
        ;;
    --record)
        _fathom_add files
        return
        ;;
    --import)
        _fathom_add files
        return
        ;;
    --deviance)
        return
        ;;
    --cells)
        return
        ;;
    --side)
        return
        ;;
    --sections)
        return
        ;;
    --genes)
        return
        ;;
    --factors)
        return
        ;;
    --nonspatial)
        return
        ;;
    --groups)
        return
        ;;
    --missing-groups)
        return
        ;;
    --lengthscale)
        return
        ;;
    --density)
        return
        ;;
    --dispersion)
        return
        ;;
    --depth)
        return
        ;;
    --sampler)
        return
        ;;
    --h5ad)
        _fathom_add files
        return
        ;;
    --permutations)
        return
        ;;
    --gene-sets)
        _fathom_add files
        return
        ;;
    --top)
        return
        ;;
    --scores)
        _fathom_add files
        return
        ;;
    --enrichment-permutations)
        return
        ;;
    --enrichment)
        _fathom_add files
        return
        ;;
    --model | -m)
        _fathom_add files
        return
        ;;
    --data)
        _fathom_add folders
        return
        ;;
    --n-pairs)
        return
        ;;
    --match-against)
        return
        ;;
    --assignment)
        return
        ;;
    --restarts)
        return
        ;;
    --tolerance)
        return
        ;;
    --truth)
        _fathom_add files
        return
        ;;
    --key)
        return
        ;;
    --strategy)
        return
        ;;
    --log-level)
        return
        ;;
    --log-file)
        _fathom_add files
        return
        ;;
    --data-path | -d)
        _fathom_add files
        return
        ;;
    --output-path | -o)
        _fathom_add files
        return
        ;;
    --images)
        return
        ;;
    --test-every)
        return
        ;;
    --split-by)
        return
        ;;
    --resize_factor | -r)
        return
        ;;
    --max-width)
        return
        ;;
    --resample)
        return
        ;;
    --masks)
        return
        ;;
    --profile)
        return
        ;;
    --raster)
        return
        ;;
    --view-order)
        return
        ;;
    --iter | -i)
        return
        ;;
    --steps-scaler)
        return
        ;;
    --sh-degree)
        return
        ;;
    --sh-degree-interval)
        return
        ;;
    --means-lr)
        return
        ;;
    --shs-lr)
        return
        ;;
    --opacity-lr)
        return
        ;;
    --scaling-lr)
        return
        ;;
    --rotation-lr)
        return
        ;;
    --lambda-dssim)
        return
        ;;
    --opacity-reg)
        return
        ;;
    --scale-reg)
        return
        ;;
    --lambda-alpha)
        return
        ;;
    --bg)
        return
        ;;
    --init-num-pts)
        return
        ;;
    --init-extent)
        return
        ;;
    --init-ply)
        _fathom_add files
        return
        ;;
    --init-opacity)
        return
        ;;
    --init-scaling)
        return
        ;;
    --refine-every)
        return
        ;;
    --start-refine)
        return
        ;;
    --stop-refine)
        return
        ;;
    --max-cap)
        return
        ;;
    --min-opacity)
        return
        ;;
    --grad-threshold)
        return
        ;;
    --prune-opacity)
        return
        ;;
    --grow-scale3d)
        return
        ;;
    --prune-scale3d)
        return
        ;;
    --grow-scale2d)
        return
        ;;
    --prune-scale2d)
        return
        ;;
    --reset-every)
        return
        ;;
    --pause-refine-after-reset)
        return
        ;;
    --save-steps)
        return
        ;;
    --checkpoint-every)
        return
        ;;
    --max-minutes)
        return
        ;;
    --eval-steps)
        return
        ;;
    --lpips-weights)
        _fathom_add files
        return
        ;;
    --num-workers)
        return
        ;;
    --render-mode)
        return
        ;;
    --pose-opt)
        return
        ;;
    --pose-lr)
        return
        ;;
    --bilateral-grid-X)
        return
        ;;
    --bilateral-grid-Y)
        return
        ;;
    --bilateral-grid-W)
        return
        ;;
    --bilateral-grid-lr)
        return
        ;;
    --tv-loss-weight)
        return
        ;;
    --sparsify-steps)
        return
        ;;
    --init-rho)
        return
        ;;
    --prune-ratio)
        return
        ;;
    --export)
        return
        ;;
    --sog-iterations)
        return
        ;;
    --timelapse-images)
        return
        ;;
    --timelapse-every)
        return
        ;;
    --views)
        return
        ;;
    --cameras)
        _fathom_add files
        return
        ;;
    --transform)
        _fathom_add files
        return
        ;;
    --orbit)
        return
        ;;
    --fps)
        return
        ;;
    --image-alpha)
        return
        ;;
    --gaussians)
        return
        ;;
    --iteration)
        return
        ;;
    --scene-scale)
        return
        ;;
    --stats)
        _fathom_add files
        return
        ;;
    --n)
        return
        ;;
    --mode)
        return
        ;;
    --adam)
        return
        ;;
    esac
    for ((i = 1; i < COMP_CWORD; i++)); do
        if [ -n "$first" ]; then
            case ${COMP_WORDS[i]} in -*) ;; *) second=${COMP_WORDS[i]}; break ;; esac
        fi
        case " $known " in *" ${COMP_WORDS[i]} "*) first=${COMP_WORDS[i]} ;; esac
    done
    case "$first $second" in
    ' '*) words="$known --help --version" ;;
    'cancel '*) words="--dir --trace --quiet --help" kind=jobs ;;
    'config check'*) words="--config-name --set --lenient --json --trace --quiet --help" kind=files ;;
    'config docs'*) words="--trace --help" kind=instruments ;;
    'clean '*) words="--all --dry-run --yes --trace --quiet --help" kind=folders ;;
    'doctor '*) words="--ops --path --data-root --exp --microscope --calibrate --bundle --memory --device --threads --json --trace --monitor --scratch --log --help" ;;
    'help '*) words="--trace --help" kind=commands ;;
    'logs '*) words="--follow --dir --stage --all --lines --trace --help" kind=jobs ;;
    'plan '*) words="--config --set --lenient --memory --device --threads --seed --ranks --json --trace --scratch --log --help" ;;
    'run '*) words="--config --config-name --set --over --skip-general --lenient --jobs --jobs-per-device --gpu-only --only --failed --force --rerun --time-limit --retries --verify --dry-run --notify --no-live --status --executor --slurm --detach --memory --device --plain-products --threads --seed --plan --json --trace --trace-kernels --monitor --scratch --log --quiet --help" kind=stages ;;
    'report '*) words="--output --embed --trace --help" kind=folders ;;
    'serve '*) words="--port --bind --token --no-token --trace --quiet --help" kind=folders ;;
    'status '*) words="--watch --names --json --trace --quiet --help" kind=folders ;;
    'version '*) words="--verbose --json --trace --help" ;;
    'bragg render'*) words="--config --set --lenient --verify --attempt --force --memory --device-memory --device --plain-products --threads --seed --plan --ranks --json --trace --trace-kernels --monitor --scratch --log --quiet --help" ;;
    'bragg figures'*) words="--config --set --lenient --verify --attempt --force --memory --device-memory --device --plain-products --threads --seed --plan --ranks --json --trace --trace-kernels --monitor --scratch --log --quiet --help" ;;
    'bragg plan'*) words="--config --set --lenient --memory --device-memory --device --plain-products --threads --seed --ranks --json --trace --scratch --log --help" ;;
    'bragg generate'*) words="--config --force --json --trace --quiet --help" ;;
    'bragg refine'*) words="--free --fix --tie --iterations --adc --gain --dataset --frame --no-lattice --out --figure --compat --quirk --fdump --memory --device-memory --device --plain-products --threads --seed --plan --json --trace --trace-kernels --monitor --scratch --log --quiet --help" kind=files ;;
    'bragg noisify'*) words="--compat --quirk --memory --device-memory --device --plain-products --threads --seed --plan --json --trace --trace-kernels --monitor --scratch --log --quiet --help" kind=files ;;
    'bragg nonbragg'*) words="--compat --quirk --memory --device-memory --device --plain-products --threads --seed --plan --json --trace --trace-kernels --monitor --scratch --log --quiet --help" kind=files ;;
    'bragg draw'*) words="--compat --quirk --out --only --dpi --format --memory --device-memory --device --plain-products --threads --seed --plan --json --trace --trace-kernels --monitor --scratch --log --quiet --help" kind=files ;;
    'focus index'*) words="--config --set --lenient --verify --attempt --force --memory --device-memory --device --plain-products --threads --seed --plan --json --trace --trace-kernels --monitor --scratch --log --quiet --help" ;;
    'focus fuse'*) words="--config --set --lenient --verify --attempt --force --replace --memory --device-memory --device --plain-products --threads --seed --plan --json --trace --trace-kernels --monitor --scratch --log --quiet --help" ;;
    'focus stitch'*) words="--config --set --lenient --verify --attempt --force --replace --memory --device-memory --device --plain-products --threads --seed --plan --json --trace --trace-kernels --monitor --scratch --log --quiet --help" ;;
    'focus figures'*) words="--config --set --lenient --verify --attempt --force --memory --device-memory --device --plain-products --threads --seed --plan --json --trace --trace-kernels --monitor --scratch --log --quiet --help" ;;
    'focus stack'*) words="--output --method --measure --filter-size --filter-um --sigma --border --levels --window --base --consistency --reassign --clamp --interp --halo --prefer --low --high --scale --polarity --reject --alpha --corr --compat --compat-batch --channel --channels --z-keep --z-range --wells --times --z-step --um-per-px --rgb-order --nd2-search --read-mode --image-format --index-map --depth-map --confidence --metrics --scalebar --workers --require-gpu --strict --ignore-space --raw --memory --device-memory --device --plain-products --threads --plan --json --trace --trace-kernels --monitor --scratch --log --quiet --help" kind=files ;;
    'focus run'*) words="--data-root --exp --microscope --method --measure --filter-size --filter-um --sigma --border --levels --window --base --consistency --reassign --clamp --interp --halo --prefer --low --high --scale --polarity --reject --alpha --corr --compat --compat-batch --channel --channels --z-keep --z-range --wells --times --z-step --um-per-px --rgb-order --nd2-search --read-mode --image-format --index-map --depth-map --confidence --metrics --scalebar --workers --require-gpu --strict --ignore-space --trace-stacks --overwrite --force-config --layout --metadata-only --map --ref-xy --allow-duplicate-wells --fix-time-jumps --overlap --blend --orientation --grid --stitch-z --overwrite-stitch --run-dir --memory --device-memory --device --plain-products --threads --plan --json --trace --trace-kernels --monitor --scratch --log --quiet --help" ;;
    'focus plan'*) words="--data-root --exp --microscope --method --measure --filter-size --filter-um --sigma --border --levels --window --base --consistency --reassign --clamp --interp --halo --prefer --low --high --scale --polarity --reject --alpha --corr --compat --compat-batch --channel --channels --z-keep --z-range --wells --times --z-step --um-per-px --rgb-order --nd2-search --read-mode --image-format --index-map --depth-map --confidence --metrics --scalebar --workers --require-gpu --strict --ignore-space --trace-stacks --overwrite --force-config --layout --metadata-only --map --ref-xy --allow-duplicate-wells --fix-time-jumps --overlap --blend --orientation --grid --stitch-z --overwrite-stitch --run-dir --memory --device-memory --device --plain-products --threads --json --trace --trace-kernels --monitor --scratch --log --quiet --help" ;;
    'focus info'*) words="--crc --memory --device-memory --device --plain-products --threads --json --trace --trace-kernels --monitor --scratch --log --help" kind=files ;;
    'focus sheet'*) words="--data-root --exp --output --layout --run-dir --memory --device-memory --device --plain-products --threads --plan --json --trace --trace-kernels --monitor --scratch --log --quiet --help" ;;
    'focus init-plate'*) words="--output --memory --device-memory --device --plain-products --threads --plan --json --trace --trace-kernels --monitor --scratch --log --quiet --help" ;;
    'focus toy'*) words="--output --exp --microscope --wells --times --planes --size --memory --device-memory --device --plain-products --threads --seed --plan --json --trace --trace-kernels --monitor --scratch --log --quiet --help" ;;
    'focus bench'*) words="--z --height --width --batch --iters --warmup --filter-size --method --devices --memory --device-memory --device --plain-products --threads --seed --plan --json --trace --trace-kernels --monitor --scratch --log --quiet --help" ;;
    'focus convert'*) words="--output --data-root --exp --layout --stacks --microscope --map --ref-xy --ngff --compressor --tile --levels --wells --times --channels --um-per-px --z-step --overwrite --ignore-space --memory --device-memory --device --plain-products --threads --plan --json --trace --trace-kernels --monitor --scratch --log --quiet --help" kind=files ;;
    'focus selftest'*) words="--devices --output --memory --device-memory --device --plain-products --threads --json --trace --trace-kernels --monitor --scratch --log --quiet --help" ;;
    'ptycho data'*) words="--config --set --lenient --verify --attempt --force --memory --device-memory --device --plain-products --threads --seed --plan --json --trace --trace-kernels --monitor --scratch --log --quiet --help" ;;
    'ptycho solve'*) words="--config --set --lenient --verify --attempt --force --method --train_data_file --test_data_file --data.kind --N --nphotons --gridsize --strict --positions.use --positions.sign --flip_x --flip_y --swap_xy --coord_scale --probe_guess --subset --probe_resize --mask.convention --energy_eV --distance_m --detector_pixel_m --particle --crop --centre_x --centre_y --bin --hdf5.data --hdf5.mask --hdf5.x --hdf5.y --hdf5.distance_m --hdf5.pixel_m --hdf5.energy_eV --hdf5.probe --positions.file --positions.unit --positions.step --probe_mask --probe_mask_sigma --probe_mask_diameter --pictures --precision --algorithm --iterations --batch --object_alpha --probe_alpha --raar_beta --dm_alpha --noise_model --modes --probe_start --position_start --position_step --position_limit --subpixel --batching --object_init --start_from --probe_power --rescale_probe --orthogonalise --scale_every --overlap_iterations --object_inertia --probe_inertia --power_bound --variant --rng --order --object_min --object_max --phase_min --phase_max --object_smooth --object_tv --raster_period --probe_threshold --probe_aperture --keep_mean_position --fix_probe_power --momentum --momentum_every --object_momentum --probe_momentum --opr --centre_probe --out --memory --device-memory --device --plain-products --threads --seed --plan --json --trace --trace-kernels --monitor --scratch --log --quiet --help" kind=files ;;
    'ptycho train'*) words="--config --set --lenient --verify --attempt --force --method --train_data_file --test_data_file --data.kind --N --nphotons --gridsize --strict --positions.use --positions.sign --flip_x --flip_y --swap_xy --coord_scale --probe_guess --subset --probe_resize --mask.convention --energy_eV --distance_m --detector_pixel_m --particle --crop --centre_x --centre_y --bin --hdf5.data --hdf5.mask --hdf5.x --hdf5.y --hdf5.distance_m --hdf5.pixel_m --hdf5.energy_eV --hdf5.probe --positions.file --positions.unit --positions.step --probe_mask --probe_mask_sigma --probe_mask_diameter --pictures --precision --n_groups --n_subsample --subsample_seed --neighbor_count --enable_oversampling --neighbor_pool_size --sequential_sampling --merge --merge_size --offset --max_position_jitter --stitch_crop --stitch.weight --stitch.canvas --stitch.patches --model_type --architecture --n_filters_scale --flavour --amp_activation --object_big --probe_big --pad_object --probe_scale --batch_size --nepochs --mae_weight --nll_weight --realspace_weight --tv_weight --realspace_mae_weight --gaussian_smoothing_sigma --probe_trainable --intensity_scale_trainable --optimizer --learning_rate --scheduler --plateau_factor --plateau_patience --plateau_min_lr --warmup_epochs --lr_min_ratio --early_stop_patience --gradient_clip_val --gradient_clip_algorithm --keep --deterministic --checkpoint_every --normalisation --normalise --model_file --out --memory --device-memory --device --plain-products --threads --seed --plan --json --trace --trace-kernels --monitor --scratch --log --quiet --help" kind=files ;;
    'ptycho infer'*) words="--config --set --lenient --verify --attempt --force --method --train_data_file --test_data_file --data.kind --N --nphotons --gridsize --strict --positions.use --positions.sign --flip_x --flip_y --swap_xy --coord_scale --probe_guess --subset --probe_resize --mask.convention --energy_eV --distance_m --detector_pixel_m --particle --crop --centre_x --centre_y --bin --hdf5.data --hdf5.mask --hdf5.x --hdf5.y --hdf5.distance_m --hdf5.pixel_m --hdf5.energy_eV --hdf5.probe --positions.file --positions.unit --positions.step --probe_mask --probe_mask_sigma --probe_mask_diameter --pictures --precision --n_groups --n_subsample --subsample_seed --neighbor_count --enable_oversampling --neighbor_pool_size --sequential_sampling --merge --merge_size --offset --max_position_jitter --stitch_crop --stitch.weight --stitch.canvas --stitch.patches --model_type --architecture --n_filters_scale --flavour --amp_activation --object_big --probe_big --pad_object --probe_scale --batch_size --nepochs --mae_weight --nll_weight --realspace_weight --tv_weight --realspace_mae_weight --gaussian_smoothing_sigma --probe_trainable --intensity_scale_trainable --optimizer --learning_rate --scheduler --plateau_factor --plateau_patience --plateau_min_lr --warmup_epochs --lr_min_ratio --early_stop_patience --gradient_clip_val --gradient_clip_algorithm --keep --deterministic --checkpoint_every --normalisation --normalise --model_file --out --memory --device-memory --device --plain-products --threads --seed --plan --json --trace --trace-kernels --monitor --scratch --log --quiet --help" kind=files ;;
    'ptycho evaluate'*) words="--config --set --lenient --verify --attempt --force --out --method --train_data_file --test_data_file --data.kind --N --nphotons --gridsize --strict --positions.use --positions.sign --flip_x --flip_y --swap_xy --coord_scale --probe_guess --subset --probe_resize --mask.convention --energy_eV --distance_m --detector_pixel_m --particle --crop --centre_x --centre_y --bin --hdf5.data --hdf5.mask --hdf5.x --hdf5.y --hdf5.distance_m --hdf5.pixel_m --hdf5.energy_eV --hdf5.probe --positions.file --positions.unit --positions.step --probe_mask --probe_mask_sigma --probe_mask_diameter --pictures --precision --truth_file --skip_registration --phase_align --registration_upsample --evaluate_margin --frc_sigma --residuals --halves --vmin --vmax --show_patterns --memory --device-memory --device --plain-products --threads --seed --plan --json --trace --trace-kernels --monitor --scratch --log --quiet --help" kind=files ;;
    'ptycho figures'*) words="--config --set --lenient --verify --attempt --force --memory --device-memory --device --plain-products --threads --seed --plan --json --trace --trace-kernels --monitor --scratch --log --quiet --help" ;;
    'ptycho plan'*) words="--config --set --lenient --memory --device-memory --device --plain-products --threads --seed --json --trace --scratch --log --help" ;;
    'ptycho generate'*) words="--config --force --json --trace --quiet --help" ;;
    'ptycho info'*) words="--config --set --method --train_data_file --test_data_file --data.kind --N --nphotons --gridsize --strict --positions.use --positions.sign --flip_x --flip_y --swap_xy --coord_scale --probe_guess --subset --probe_resize --mask.convention --energy_eV --distance_m --detector_pixel_m --particle --crop --centre_x --centre_y --bin --hdf5.data --hdf5.mask --hdf5.x --hdf5.y --hdf5.distance_m --hdf5.pixel_m --hdf5.energy_eV --hdf5.probe --positions.file --positions.unit --positions.step --probe_mask --probe_mask_sigma --probe_mask_diameter --pictures --precision --memory --device-memory --device --plain-products --threads --json --trace --trace-kernels --monitor --scratch --log --help" kind=files ;;
    'ptycho check'*) words="--config --set --method --train_data_file --test_data_file --data.kind --N --nphotons --gridsize --strict --positions.use --positions.sign --flip_x --flip_y --swap_xy --coord_scale --probe_guess --subset --probe_resize --mask.convention --energy_eV --distance_m --detector_pixel_m --particle --crop --centre_x --centre_y --bin --hdf5.data --hdf5.mask --hdf5.x --hdf5.y --hdf5.distance_m --hdf5.pixel_m --hdf5.energy_eV --hdf5.probe --positions.file --positions.unit --positions.step --probe_mask --probe_mask_sigma --probe_mask_diameter --pictures --precision --memory --device-memory --device --plain-products --threads --json --trace --trace-kernels --monitor --scratch --log --help" kind=files ;;
    'ptycho convert'*) words="--config --set --method --train_data_file --test_data_file --data.kind --N --nphotons --gridsize --strict --positions.use --positions.sign --flip_x --flip_y --swap_xy --coord_scale --probe_guess --subset --probe_resize --mask.convention --energy_eV --distance_m --detector_pixel_m --particle --crop --centre_x --centre_y --bin --hdf5.data --hdf5.mask --hdf5.x --hdf5.y --hdf5.distance_m --hdf5.pixel_m --hdf5.energy_eV --hdf5.probe --positions.file --positions.unit --positions.step --probe_mask --probe_mask_sigma --probe_mask_diameter --pictures --precision --memory --device-memory --device --plain-products --threads --plan --json --trace --trace-kernels --monitor --scratch --log --quiet --help" kind=files ;;
    'ptycho simulate'*) words="--config --set --method --train_data_file --test_data_file --data.kind --N --nphotons --gridsize --strict --positions.use --positions.sign --flip_x --flip_y --swap_xy --coord_scale --probe_guess --subset --probe_resize --mask.convention --energy_eV --distance_m --detector_pixel_m --particle --crop --centre_x --centre_y --bin --hdf5.data --hdf5.mask --hdf5.x --hdf5.y --hdf5.distance_m --hdf5.pixel_m --hdf5.energy_eV --hdf5.probe --positions.file --positions.unit --positions.step --probe_mask --probe_mask_sigma --probe_mask_diameter --pictures --precision --object --object_file --size --lines --object_scale --phase --probe_file --default_probe_scale --probe_curvature --n_images --n_test_images --scan --buffer --jitter --object_seed --test_object_seed --noise_seed --units --noise --out --memory --device-memory --device --plain-products --threads --seed --plan --json --trace --trace-kernels --monitor --scratch --log --quiet --help" kind=files ;;
    'ptycho compare'*) words="--out --config --set --method --train_data_file --test_data_file --data.kind --N --nphotons --gridsize --strict --positions.use --positions.sign --flip_x --flip_y --swap_xy --coord_scale --probe_guess --subset --probe_resize --mask.convention --energy_eV --distance_m --detector_pixel_m --particle --crop --centre_x --centre_y --bin --hdf5.data --hdf5.mask --hdf5.x --hdf5.y --hdf5.distance_m --hdf5.pixel_m --hdf5.energy_eV --hdf5.probe --positions.file --positions.unit --positions.step --probe_mask --probe_mask_sigma --probe_mask_diameter --pictures --precision --truth_file --skip_registration --phase_align --registration_upsample --evaluate_margin --frc_sigma --residuals --halves --vmin --vmax --show_patterns --memory --device-memory --device --plain-products --threads --seed --plan --json --trace --trace-kernels --monitor --scratch --log --quiet --help" kind=files ;;
    'ptycho view'*) words="--out --config --set --method --train_data_file --test_data_file --data.kind --N --nphotons --gridsize --strict --positions.use --positions.sign --flip_x --flip_y --swap_xy --coord_scale --probe_guess --subset --probe_resize --mask.convention --energy_eV --distance_m --detector_pixel_m --particle --crop --centre_x --centre_y --bin --hdf5.data --hdf5.mask --hdf5.x --hdf5.y --hdf5.distance_m --hdf5.pixel_m --hdf5.energy_eV --hdf5.probe --positions.file --positions.unit --positions.step --probe_mask --probe_mask_sigma --probe_mask_diameter --pictures --precision --truth_file --skip_registration --phase_align --registration_upsample --evaluate_margin --frc_sigma --residuals --halves --vmin --vmax --show_patterns --memory --device-memory --device --plain-products --threads --seed --plan --json --trace --trace-kernels --monitor --scratch --log --quiet --help" kind=files ;;
    'ptycho study'*) words="--out --output-dir --verbose --n-train --n-test --skip-training --grid-mode --nimgs-train --nimgs-test --config --set --method --train_data_file --test_data_file --data.kind --N --nphotons --gridsize --strict --positions.use --positions.sign --flip_x --flip_y --swap_xy --coord_scale --probe_guess --subset --probe_resize --mask.convention --energy_eV --distance_m --detector_pixel_m --particle --crop --centre_x --centre_y --bin --hdf5.data --hdf5.mask --hdf5.x --hdf5.y --hdf5.distance_m --hdf5.pixel_m --hdf5.energy_eV --hdf5.probe --positions.file --positions.unit --positions.step --probe_mask --probe_mask_sigma --probe_mask_diameter --pictures --precision --object --object_file --size --lines --object_scale --phase --probe_file --default_probe_scale --probe_curvature --n_images --n_test_images --scan --buffer --jitter --object_seed --test_object_seed --noise_seed --units --noise --algorithm --iterations --batch --object_alpha --probe_alpha --raar_beta --dm_alpha --noise_model --modes --probe_start --position_start --position_step --position_limit --subpixel --batching --object_init --start_from --probe_power --rescale_probe --orthogonalise --scale_every --overlap_iterations --object_inertia --probe_inertia --power_bound --variant --rng --order --object_min --object_max --phase_min --phase_max --object_smooth --object_tv --raster_period --probe_threshold --probe_aperture --keep_mean_position --fix_probe_power --momentum --momentum_every --object_momentum --probe_momentum --opr --centre_probe --n_groups --n_subsample --subsample_seed --neighbor_count --enable_oversampling --neighbor_pool_size --sequential_sampling --merge --merge_size --offset --max_position_jitter --stitch_crop --stitch.weight --stitch.canvas --stitch.patches --model_type --architecture --n_filters_scale --flavour --amp_activation --object_big --probe_big --pad_object --probe_scale --batch_size --nepochs --mae_weight --nll_weight --realspace_weight --tv_weight --realspace_mae_weight --gaussian_smoothing_sigma --probe_trainable --intensity_scale_trainable --optimizer --learning_rate --scheduler --plateau_factor --plateau_patience --plateau_min_lr --warmup_epochs --lr_min_ratio --early_stop_patience --gradient_clip_val --gradient_clip_algorithm --keep --deterministic --checkpoint_every --normalisation --normalise --model_file --truth_file --skip_registration --phase_align --registration_upsample --evaluate_margin --frc_sigma --residuals --halves --vmin --vmax --show_patterns --doses --losses --algorithms --n_train --n_test --skip_training --grid_mode --nimgs_train --nimgs_test --memory --device-memory --device --plain-products --threads --seed --plan --json --trace --trace-kernels --monitor --scratch --log --quiet --help" kind=files ;;
    'ptycho op'*) words="--config --set --method --train_data_file --test_data_file --data.kind --N --nphotons --gridsize --strict --positions.use --positions.sign --flip_x --flip_y --swap_xy --coord_scale --probe_guess --subset --probe_resize --mask.convention --energy_eV --distance_m --detector_pixel_m --particle --crop --centre_x --centre_y --bin --hdf5.data --hdf5.mask --hdf5.x --hdf5.y --hdf5.distance_m --hdf5.pixel_m --hdf5.energy_eV --hdf5.probe --positions.file --positions.unit --positions.step --probe_mask --probe_mask_sigma --probe_mask_diameter --pictures --precision --object --object_file --size --lines --object_scale --phase --probe_file --default_probe_scale --probe_curvature --n_images --n_test_images --scan --buffer --jitter --object_seed --test_object_seed --noise_seed --units --noise --n_groups --n_subsample --subsample_seed --neighbor_count --enable_oversampling --neighbor_pool_size --sequential_sampling --merge --merge_size --offset --max_position_jitter --stitch_crop --stitch.weight --stitch.canvas --stitch.patches --model_type --architecture --n_filters_scale --flavour --amp_activation --object_big --probe_big --pad_object --probe_scale --batch_size --nepochs --mae_weight --nll_weight --realspace_weight --tv_weight --realspace_mae_weight --gaussian_smoothing_sigma --probe_trainable --intensity_scale_trainable --optimizer --learning_rate --scheduler --plateau_factor --plateau_patience --plateau_min_lr --warmup_epochs --lr_min_ratio --early_stop_patience --gradient_clip_val --gradient_clip_algorithm --keep --deterministic --checkpoint_every --normalisation --normalise --model_file --interpolation --memory --device-memory --device --plain-products --threads --seed --plan --json --trace --trace-kernels --monitor --scratch --log --quiet --help" kind=files ;;
    'sounding survey'*) words="--config --set --lenient --verify --attempt --force --memory --device-memory --device --plain-products --threads --seed --plan --ranks --json --trace --trace-kernels --monitor --scratch --log --quiet --help" ;;
    'sounding fit'*) words="--config --set --lenient --verify --attempt --force --memory --device-memory --device --plain-products --threads --seed --plan --ranks --json --trace --trace-kernels --monitor --scratch --log --quiet --help" ;;
    'sounding analyze'*) words="--config --set --lenient --verify --attempt --force --memory --device-memory --device --plain-products --threads --seed --plan --ranks --json --trace --trace-kernels --monitor --scratch --log --quiet --help" ;;
    'sounding figures'*) words="--config --set --lenient --verify --attempt --force --memory --device-memory --device --plain-products --threads --seed --plan --ranks --json --trace --trace-kernels --monitor --scratch --log --quiet --help" ;;
    'sounding plan'*) words="--config --set --lenient --memory --device-memory --device --plain-products --threads --seed --ranks --json --trace --scratch --log --help" ;;
    'sounding generate'*) words="--config --force --json --trace --quiet --help" ;;
    'sounding depth'*) words="--fathoms --memory --device-memory --device --plain-products --threads --json --trace --trace-kernels --monitor --scratch --log --help" kind=files ;;
    'spatial preprocess'*) words="--config --set --lenient --verify --attempt --force --replace --keep --memory --device-memory --device --plain-products --threads --seed --plan --ranks --json --trace --trace-kernels --monitor --scratch --log --quiet --help" ;;
    'spatial train'*) words="--config --set --lenient --verify --attempt --force --resume --resume-optimizer --video --probabilistic --replay --record --import --memory --device-memory --device --plain-products --threads --seed --plan --ranks --json --trace --trace-kernels --monitor --scratch --log --quiet --help" ;;
    'spatial analyze'*) words="--config --set --lenient --verify --attempt --force --probabilistic --strict-json --allow-other-data --strict --deviance --memory --device-memory --device --plain-products --threads --seed --plan --ranks --json --trace --trace-kernels --monitor --scratch --log --quiet --help" ;;
    'spatial figures'*) words="--config --set --lenient --verify --attempt --force --no-heatmap --memory --device-memory --device --plain-products --threads --seed --plan --ranks --json --trace --trace-kernels --monitor --scratch --log --quiet --help" ;;
    'spatial plan'*) words="--config --set --lenient --memory --device-memory --device --plain-products --threads --seed --ranks --json --trace --scratch --log --help" ;;
    'spatial generate'*) words="--config --force --json --trace --quiet --help" ;;
    'spatial info'*) words="--memory --device-memory --device --plain-products --threads --json --trace --trace-kernels --monitor --scratch --log --help" kind=files ;;
    'spatial toy'*) words="--output --cells --side --sections --genes --factors --nonspatial --groups --missing-groups --lengthscale --alpha --jitter --density --dispersion --depth --sampler --image --h5ad --memory --device-memory --device --plain-products --threads --seed --plan --json --trace --trace-kernels --monitor --scratch --log --quiet --help" ;;
    'spatial export'*) words="--config --output --memory --device-memory --device --plain-products --threads --plan --json --trace --trace-kernels --monitor --scratch --log --quiet --help" ;;
    'spatial genes'*) words="--config --output --normalise --permutations --gene-sets --top --scores --enrichment-permutations --enrichment --memory --device-memory --device --plain-products --threads --plan --json --trace --trace-kernels --monitor --scratch --log --quiet --help" ;;
    'spatial page'*) words="--config --output --genes --top --cells --memory --device-memory --device --plain-products --threads --plan --json --trace --trace-kernels --monitor --scratch --log --quiet --help" ;;
    'spatial project'*) words="--model --data --output --least-squares --memory --device-memory --device --plain-products --threads --plan --json --trace --trace-kernels --monitor --scratch --log --quiet --help" ;;
    'spatial multianalyze'*) words="--config --n-pairs --match-against --assignment --output --memory --device-memory --device --plain-products --threads --plan --json --trace --trace-kernels --monitor --scratch --log --quiet --help" kind=files ;;
    'spatial sweep'*) words="--config --over --output --memory --device-memory --device --plain-products --threads --plan --json --trace --trace-kernels --monitor --scratch --log --quiet --help" ;;
    'spatial consensus'*) words="--config --restarts --over --density --tolerance --jobs --output --memory --device-memory --device --plain-products --threads --plan --json --trace --trace-kernels --monitor --scratch --log --quiet --help" ;;
    'spatial recovery'*) words="--truth --key --log-space --memory --device-memory --device --plain-products --threads --plan --json --trace --trace-kernels --monitor --scratch --log --help" kind=folders ;;
    'splat data'*) words="--config --set --lenient --verify --attempt --force --memory --device-memory --device --plain-products --threads --seed --plan --json --trace --trace-kernels --monitor --scratch --log --quiet --help" ;;
    'splat train'*) words="--config --set --lenient --verify --attempt --force --strategy --fresh --resume --log-level --log-file --deterministic --headless --data-path --output-path --images --test-every --split-by --ignore-distortion --legacy-yturn --resize_factor --max-width --resample --masks --alpha --profile --raster --view-order --iter --steps-scaler --sh-degree --sh-degree-interval --means-lr --shs-lr --opacity-lr --scaling-lr --rotation-lr --lambda-dssim --opacity-reg --scale-reg --lambda-alpha --bg --bg-modulation --random --init-num-pts --init-extent --init-ply --init-opacity --init-scaling --refine-every --start-refine --stop-refine --max-cap --min-opacity --relocate-zero-dead --grad-threshold --prune-opacity --grow-scale3d --prune-scale3d --grow-scale2d --prune-scale2d --reset-every --pause-refine-after-reset --revised-opacity --save-steps --skip-intermediate --checkpoint-every --max-minutes --eval-steps --eval --save-eval-images --lpips-weights --legacy-ssim --num-workers --gut --antialiasing --render-mode --pose-opt --pose-lr --bilateral-grid --bilateral-grid-X --bilateral-grid-Y --bilateral-grid-W --bilateral-grid-lr --tv-loss-weight --enable-sparsity --sparsify-steps --init-rho --prune-ratio --export --sog --sog-iterations --save-depth --timelapse-images --timelapse-every --memory --device-memory --device --plain-products --threads --seed --plan --json --trace --trace-kernels --monitor --scratch --log --quiet --help" ;;
    'splat eval'*) words="--config --set --lenient --verify --attempt --force --data-path --output-path --views --test-every --cameras --split-by --images --resize_factor --bg --raster --antialiasing --gut --masks --lpips-weights --alpha --no-images --save-depth --legacy-ssim --ignore-distortion --legacy-yturn --memory --device-memory --device --plain-products --threads --seed --plan --json --trace --trace-kernels --monitor --scratch --log --quiet --help" kind=files ;;
    'splat figures'*) words="--config --set --lenient --verify --attempt --force --memory --device-memory --device --plain-products --threads --seed --plan --json --trace --trace-kernels --monitor --scratch --log --quiet --help" ;;
    'splat plan'*) words="--config --set --lenient --memory --device-memory --device --plain-products --threads --seed --json --trace --scratch --log --help" ;;
    'splat generate'*) words="--config --force --json --trace --quiet --help" ;;
    'splat info'*) words="--profile --images --legacy-yturn --memory --device-memory --device --plain-products --threads --json --trace --trace-kernels --monitor --scratch --log --quiet --help" kind=files ;;
    'splat convert'*) words="--sh-degree --crop --transform --memory --device-memory --device --plain-products --threads --plan --json --trace --trace-kernels --monitor --scratch --log --quiet --help" kind=files ;;
    'splat render'*) words="--data-path --cameras --output-path --views --test-every --split-by --images --bg --format --depth --render-mode --video --orbit --fps --alpha --gradients --masks --image-alpha --lambda-alpha --raster --antialiasing --gut --ignore-distortion --legacy-yturn --memory --device-memory --device --plain-products --threads --plan --json --trace --trace-kernels --monitor --scratch --log --quiet --help" kind=files ;;
    'splat toy'*) words="--output-path --gaussians --views --size --memory --device-memory --device --plain-products --threads --seed --plan --json --trace --trace-kernels --monitor --scratch --log --quiet --help" ;;
    'splat densify'*) words="--iteration --scene-scale --strategy --stats --noise --canonical-order --set --output-path --memory --device-memory --device --plain-products --threads --seed --plan --json --trace --trace-kernels --monitor --scratch --log --quiet --help" kind=files ;;
    'splat bench-densify'*) words="--n --mode --adam --memory --device-memory --device --plain-products --threads --plan --json --trace --trace-kernels --monitor --scratch --log --quiet --help" ;;
    'config '*) words="check docs" ;;
    'bragg '*) words="render figures plan generate refine noisify nonbragg draw --compat --quirk --precision --fdump --checkpoint --smv32 --cbf --preview --preview-scale --flags --memory --device-memory --device --plain-products --threads --seed --plan --ranks --json --trace --trace-kernels --scratch --log --quiet --help" ;;
    'focus '*) words="index fuse stitch figures stack run plan info sheet init-plate toy bench convert selftest" ;;
    'ptycho '*) words="data solve train infer evaluate figures plan generate info check convert simulate compare view study op" ;;
    'sounding '*) words="survey fit analyze figures plan generate depth" ;;
    'spatial '*) words="preprocess train analyze figures plan generate info toy export genes page project multianalyze sweep consensus recovery" ;;
    'splat '*) words="data train eval figures plan generate info convert render toy densify bench-densify" ;;
    esac
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
    case $word in -*) ;; *) _fathom_add "$kind" ;; esac
}
complete -F _fathom fathom
